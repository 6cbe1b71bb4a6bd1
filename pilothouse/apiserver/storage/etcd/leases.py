"""Leases for keys with a TTL. Keys that expire at about the same time share a lease, because leases are expensive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aetcd import rpc
from prometheus_client import Histogram

from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.tallies import REGISTRY

# A lease is reused for a twentieth of the TTL, at most for a minute and for a limited number of keys.
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
    """Keeps the last lease only: nearly all keys with a TTL (Events) have the same TTL."""

    _lease: int
    _expires: float  # expiry of _lease
    _keys: int  # number of writes with _lease

    def __init__(
        self, client: EtcdClient, *, reuse: int = REUSE_SECONDS, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`reuse`: seconds for which a lease accepts further keys."""
        self._client = client
        self._reuse = reuse
        self._now = now
        self._lock = asyncio.Lock()
        self.forget()

    async def lease_for(self, ttl: int) -> int:
        """Return a lease that lasts for `ttl` seconds or slightly longer."""
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
        """Drop the last lease after its premature end."""
        self._lease, self._expires, self._keys = 0, 0.0, 0
