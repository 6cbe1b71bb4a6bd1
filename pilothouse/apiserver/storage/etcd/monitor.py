"""Monitor of etcd's database size and alarms."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.storage.metrics import forget_size, report_size

# kube-apiserver's --etcd-db-metric-poll-interval in seconds, and its name of the first cluster.
_EVERY = 30.0
_CLUSTER = "etcd-0"

log = logging.getLogger(__name__)


class EtcdMonitor:
    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._size = 0

    async def run(self) -> None:
        report_size(_CLUSTER, lambda: self._size)
        try:
            while True:
                with suppress(StorageError):
                    self._size = (await self._client.status()).dbSize
                await asyncio.sleep(_EVERY)
        finally:
            forget_size(_CLUSTER)

    async def check(self) -> None:
        """Check the status. Raises Unavailable if etcd refuses writes."""
        status = await self._client.status()
        self._size = status.dbSize
        alarms = [error for error in status.errors if "alarm" in error]
        if alarms:
            raise Unavailable(f"etcd takes no writes: {', '.join(alarms)}")
