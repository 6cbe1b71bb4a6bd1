"""Leases for keys with a time to live. Keys that are to go at about the same time share one: leases are expensive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aetcd import rpc
from prometheus_client import Histogram

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.storage.etcd.client import EtcdClient

# A lease is used again for a twentieth of the time to live, but not for longer than a minute or for more keys.
_REUSE_SHARE = 0.05
REUSE_SECONDS = 60
_MAX_KEYS = 1000

_KEYS_PER_LEASE = Histogram(
    "etcd_lease_object_counts",
    "Number of objects attached to a single etcd lease.",
    buckets=(10, 50, 100, 500, 1000, 2500, 5000),
    registry=REGISTRY,
)


class LeaseManager:
    """Keeps the last lease only: the keys that have a time to live (Events) nearly all have the same."""

    _lease: int
    _expires: float  # when _lease runs out
    _keys: int  # how many writes were given _lease

    def __init__(
        self, client: EtcdClient, *, reuse: int = REUSE_SECONDS, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`reuse`: for how many seconds a lease is given to more keys."""
        self._client = client
        self._reuse = reuse
        self._now = now
        self._lock = asyncio.Lock()
        self.forget()

    async def lease_for(self, ttl: int) -> int:
        """A lease that lasts for `ttl` seconds, or a little longer."""
        reuse = min(int(_REUSE_SHARE * ttl), self._reuse)
        async with self._lock:
            now = self._now()
            self._keys += 1
            fits = now + ttl < self._expires <= now + ttl + reuse
            if not fits or self._keys > _MAX_KEYS:
                seconds = ttl + reuse
                response = await self._client.grant(rpc.LeaseGrantRequest(TTL=seconds))
                if self._lease:
                    _KEYS_PER_LEASE.observe(self._keys - 1)
                self._lease, self._expires, self._keys = response.ID, now + seconds, 1
            return self._lease

    def forget(self) -> None:
        """The last lease is gone before its time."""
        self._lease, self._expires, self._keys = 0, 0.0, 0
