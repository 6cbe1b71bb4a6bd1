"""Review webhooks (TokenReview, SubjectAccessReview) with bounded latency."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilothouse.apiserver.webhook.reviews import ReviewFailed
from pilothouse.client.config.model import ConfigError
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, InvalidResponse, RequestTimedOut
from pilothouse.client.rest.webhook import GenericWebhook
from pilothouse.machinery.event_loop import RunUntilCancelled
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_AGAIN = (InternalError, Timeout, TooManyRequests)


class PostedReviews:
    """Posts reviews to a webhook."""

    def __init__(self, webhook: GenericWebhook, *, patience: float | None = None) -> None:
        """Create the client. `patience` bounds a review, including retries, in seconds."""
        self._webhook = webhook
        self._patience = patience

    async def review(self, review: Json) -> Json:
        """Post a review, and return the answer. Raises ReviewFailed."""
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


class KubeconfigReviews(PostedReviews, RunUntilCancelled):
    """Posts reviews to the webhook of a kubeconfig."""

    def __init__(self, file: Path, *, timeout: float = 30.0, initial_backoff: float = 0.5) -> None:
        """Load the kubeconfig. Raises ValueError."""
        try:
            webhook = GenericWebhook.load(file, timeout=timeout, initial_backoff=initial_backoff, may_help=may_help)
        except (ConfigError, OSError) as error:
            raise ValueError(str(error)) from None
        super().__init__(webhook)

    async def close(self) -> None:
        await self._webhook.close()


def may_help(error: Exception) -> bool:
    """Report whether to retry. Refused connections and timeouts are final, so that the waiting request fails fast."""
    if isinstance(error, StatusError):
        return isinstance(error, _AGAIN) or error.retry_after_seconds > 0
    return not isinstance(error, ConnectionRefused | RequestTimedOut)
