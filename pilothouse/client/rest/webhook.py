"""A webhook that a kubeconfig names: something is posted to it, and again, with growing pauses, when that may help."""

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
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests
from pilothouse.machinery.status_error import StatusError

_ATTEMPTS = 5
_FACTOR = 1.5
_AGAIN = (ConnectionFailed, InternalError, ServiceUnavailable, Timeout, TooManyRequests)

MayHelp: TypeAlias = Callable[[Exception], bool]


def may_help_later(error: Exception) -> bool:
    return isinstance(error, _AGAIN)


class KubeconfigWebhook:
    def __init__(
        self,
        client: Client,
        *,
        initial_backoff: float = 0.5,
        may_help: MayHelp = may_help_later,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        """`may_help`: whether to try again after an error."""
        self._client = client
        self._initial_backoff = initial_backoff
        self._may_help = may_help
        self._clock = clock

    @classmethod
    def load(
        cls,
        file: Path,
        *,
        initial_backoff: float = 0.5,
        may_help: MayHelp = may_help_later,
        timeout: float | None = None,
    ) -> KubeconfigWebhook:
        """Raises ConfigError, OSError."""
        config = replace(load_kubeconfig(file), timeout=timeout, qps=0)
        return cls(connect(config), initial_backoff=initial_backoff, may_help=may_help)

    async def post(self, body: Json) -> Json:
        """Return its answer. Raises StatusError, ConnectionFailed or InvalidResponse as the last attempt did."""
        pause = self._initial_backoff
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._client.request("POST", "", body=body)
            except (StatusError, ConnectionFailed) as error:
                if not self._may_help(error):
                    raise
                await self._clock.sleep(pause)
                pause *= _FACTOR
        return await self._client.request("POST", "", body=body)

    async def close(self) -> None:
        await self._client.close()
