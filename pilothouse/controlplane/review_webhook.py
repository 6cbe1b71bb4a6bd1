"""Webhooks that answer reviews: nobody waits for them longer than they must."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilothouse.apiserver.webhook.reviews import ReviewFailed
from pilothouse.client.config.model import ConfigError
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, InvalidResponse, RequestTimedOut
from pilothouse.client.rest.webhook import GenericWebhook
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_AGAIN = (InternalError, Timeout, TooManyRequests)


class PostedReviews:
    """Posts reviews to the webhook."""

    def __init__(self, webhook: GenericWebhook, *, patience: float | None = None) -> None:
        """`patience`: seconds for a review, however often it is tried."""
        self._webhook = webhook
        self._patience = patience

    async def review(self, review: Json) -> Json:
        """Raises ReviewFailed."""
        try:
            async with asyncio.timeout(self._patience):
                return await self._webhook.post(review)
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            code = error.code if isinstance(error, StatusError) else 0
            raise ReviewFailed(
                str(error), code=code, timed_out=isinstance(error, RequestTimedOut) or code == 504
            ) from None
        except TimeoutError:
            raise ReviewFailed(f"no answer within {self._patience:g} s", timed_out=True) from None


class KubeconfigReviews(PostedReviews):
    """Posts reviews to the webhook that a kubeconfig names."""

    def __init__(self, file: Path, *, timeout: float = 30.0, initial_backoff: float = 0.5) -> None:
        """Raises ValueError."""
        try:
            webhook = GenericWebhook.load(file, timeout=timeout, initial_backoff=initial_backoff, may_help=may_help)
        except (ConfigError, OSError) as error:
            raise ValueError(str(error)) from None
        super().__init__(webhook)

    async def run(self) -> None:
        """Keeps its connections until cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        await self._webhook.close()


def may_help(error: Exception) -> bool:
    """Whether to ask again. Where nobody listens, or where somebody takes too long, the request that waits is better
    off with the news."""
    if isinstance(error, StatusError):
        return isinstance(error, _AGAIN) or error.retry_after_seconds > 0
    return not isinstance(error, ConnectionRefused | RequestTimedOut)
