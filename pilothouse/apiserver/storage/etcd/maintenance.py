"""Background work on an etcd cluster: compaction, and the monitor of database size and alarms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aetcd import rpc

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.storage.etcd.failures import CompactedRevision
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.metrics import forget_size, report_size

_KEY = b"compact_rev_key"

log = logging.getLogger(__name__)


class EtcdCompactor:
    """Compaction by one of several servers: once an interval, history older than one interval is dropped.

    The servers share the key `compact_rev_key`, whose version counts compactions. A server that knows the current
    version increments it, and compacts to the revision noted one interval ago; the others learn the new version and
    retry an interval later. kube-apiserver uses the same key, so both may share an etcd.

        A: version 3, revision 100 → wins: version 4, compacts to 100, notes 150
        B: version 3, revision 120 → loses: learns version 4, notes 160; takes over if A does not come back
    """

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._version = 0  # known version of the key
        self._noted: Revision = 0  # current revision one interval ago

    async def run(self, interval: float, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        while True:
            await sleep(interval)
            try:
                await self.compact_once()
            except StorageError as error:
                log.warning("compaction failed and is tried again: %s", error)

    async def compact_once(self) -> None:
        """Compact if this server wins. Raises Unavailable."""
        older = self._noted
        known = rpc.Compare(key=_KEY, target=rpc.Compare.VERSION, result=rpc.Compare.EQUAL, version=self._version)
        put = rpc.PutRequest(key=_KEY, value=b"%d" % self._noted)
        response = await self._client.txn(
            rpc.TxnRequest(
                compare=[known],
                success=[rpc.RequestOp(request_put=put)],
                failure=[rpc.RequestOp(request_range=rpc.RangeRequest(key=_KEY))],
            )
        )
        self._noted = response.header.revision
        if not response.succeeded:
            self._version = response.responses[0].response_range.kvs[0].version
            return
        self._version += 1
        if older:
            await self._compact(older)

    async def _compact(self, revision: Revision) -> None:
        try:
            await self._client.compact(rpc.CompactionRequest(revision=revision))
        except CompactedRevision:
            return
        log.debug("compacted up to revision %d", revision)


# kube-apiserver's --etcd-db-metric-poll-interval in seconds, and its name of the first cluster.
_EVERY = 30.0
_CLUSTER = "etcd-0"


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
