"""A webhook that a kubeconfig names: something is posted to it, and again, with growing pauses, when that may help."""

from __future__ import annotations

from pathlib import Path

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.client import RESTClient
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.machinery.errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests
from pilothouse.machinery.objects import Json

_ATTEMPTS = 5
_FACTOR = 1.5
_AGAIN = (ConnectionFailed, InternalError, ServiceUnavailable, Timeout, TooManyRequests)


class KubeconfigWebhook:
    def __init__(self, client: RESTClient, *, initial_backoff: float = 0.5, clock: Clock = REAL_CLOCK) -> None:
        self._client = client
        self._initial_backoff = initial_backoff
        self._clock = clock

    @classmethod
    def load(cls, file: Path, *, initial_backoff: float = 0.5) -> KubeconfigWebhook:
        """Raises ConfigError, OSError."""
        return cls(connect(load_kubeconfig(file)), initial_backoff=initial_backoff)

    async def post(self, body: Json) -> Json:
        """What it answers. Raises StatusError, ConnectionFailed, InvalidResponse: what the last attempt did."""
        pause = self._initial_backoff
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._client.request("POST", "", body=body)
            except _AGAIN:
                await self._clock.sleep(pause)
                pause *= _FACTOR
        return await self._client.request("POST", "", body=body)

    async def close(self) -> None:
        await self._client.close()
