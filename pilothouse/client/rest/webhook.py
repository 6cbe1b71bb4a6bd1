"""GenericWebhook: POST of a JSON object with retries and exponential backoff."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.wait import Backoff
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_ATTEMPTS = 5
_BACKOFF = Backoff(duration=0.5, factor=1.5, jitter=0.2, steps=_ATTEMPTS)
_RETRIABLE = (ConnectionFailed, InternalError, ServiceUnavailable, Timeout, TooManyRequests)

MayHelp: TypeAlias = Callable[[Exception], bool]


def is_retriable(error: Exception) -> bool:
    return isinstance(error, _RETRIABLE)


class GenericWebhook:
    def __init__(
        self,
        client: Client,
        path: str = "",
        *,
        timeout: float | None = None,
        initial_backoff: float = _BACKOFF.duration,
        may_help: MayHelp = is_retriable,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """`path` is relative to the client's server. `timeout` limits one attempt. `may_help` decides whether an
        error is retried."""
        self._client = client
        self._path = path
        self._timeout = timeout
        self._backoff = replace(_BACKOFF, duration=initial_backoff)
        self._may_help = may_help
        self._clock = clock

    @classmethod
    def load(
        cls,
        file: Path,
        *,
        initial_backoff: float = _BACKOFF.duration,
        may_help: MayHelp = is_retriable,
        timeout: float | None = None,
    ) -> GenericWebhook:
        """Return the webhook described by a kubeconfig. Raises ConfigError, OSError."""
        config = replace(load_kubeconfig(file), timeout=timeout, qps=0)
        return cls(connect(config), initial_backoff=initial_backoff, may_help=may_help)

    async def post(self, body: Json) -> Json:
        """Post the body and return the response. Raises StatusError, ConnectionFailed or InvalidResponse of the last
        attempt."""
        next_delay = self._backoff.delays()
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._attempt(body)
            except (StatusError, ConnectionFailed) as error:
                if not self._may_help(error):
                    raise
                await self._clock.sleep(next_delay())
        return await self._attempt(body)

    async def _attempt(self, body: Json) -> Json:
        return await self._client.request("POST", self._path, body=body, timeout=self._timeout)

    async def close(self) -> None:
        await self._client.close()
