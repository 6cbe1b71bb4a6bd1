"""Client of an etcd cluster, through any member.

Calls go to one member until it fails, then to the next. A call that changes nothing, or was certainly not executed, is
repeated on other members; other failures are reported as uncertain.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import grpc
from aetcd import rpc

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.failures import CallFailure, failure_of
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.tracing.http_spans import outgoing_rpc
from pilothouse.apiserver.tracing.spans import CURRENT
from pilothouse.machinery.dataclass import dataclass

_DEFAULT_PORT = 2379

# A lost connection is noticed within 15 s, and restored within one second of the member's return. etcd rejects pings
# more frequent than every 5 s.
_OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 3_000),  # also the timeout of a connection attempt
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True, slots=True)
class EtcdTlsFiles:
    """Paths of PEM files; empty if unset."""

    ca: str = ""
    cert: str = ""
    key: str = ""


class EtcdEndpoint:
    """Calls take a request and a timeout, and raise AioRpcError."""

    def __init__(self, url: str, tls: EtcdTlsFiles) -> None:
        """Connects with the first call. Raises StorageError or OSError."""
        self.url = url
        self.channel = _channel(url, tls)
        kv = rpc.KVStub(self.channel)
        self.range, self.txn, self.compact = kv.Range, kv.Txn, kv.Compact
        lease = rpc.LeaseStub(self.channel)
        self.grant, self.time_to_live = lease.LeaseGrant, lease.LeaseTimeToLive
        self.status = rpc.MaintenanceStub(self.channel).Status
        self.watch = rpc.WatchStub(self.channel).Watch


def _channel(url: str, tls: EtcdTlsFiles) -> grpc.aio.Channel:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StorageError(f'"{url}" is no URL of an etcd member')
    target = parts.netloc if parts.port else f"{parts.netloc}:{_DEFAULT_PORT}"
    if parts.scheme == "http":
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    ca = tls.ca or ssl.get_default_verify_paths().cafile or ""
    return grpc.aio.secure_channel(
        target,
        grpc.ssl_channel_credentials(
            root_certificates=_read(ca), private_key=_read(tls.key), certificate_chain=_read(tls.cert)
        ),
        options=_OPTIONS,
    )


def _read(path: str) -> bytes | None:
    return Path(path).read_bytes() if path else None


# Longer than etcd's own 7 s request timeout, so that its answer arrives.
REQUEST_TIMEOUT = 10.0
_CLOSE_GRACE = 1.0

# Generated protobuf classes have no types.
Message: TypeAlias = Any
_Method: TypeAlias = Callable[[EtcdEndpoint], Callable[..., Awaitable[Message]]]

_RANGE: _Method = attrgetter("range")
_TXN: _Method = attrgetter("txn")
_COMPACT: _Method = attrgetter("compact")
_GRANT: _Method = attrgetter("grant")
_STATUS: _Method = attrgetter("status")
_TIME_TO_LIVE: _Method = attrgetter("time_to_live")
_NAMES = {
    _RANGE: "etcdserverpb.KV/Range",
    _TXN: "etcdserverpb.KV/Txn",
    _COMPACT: "etcdserverpb.KV/Compact",
    _GRANT: "etcdserverpb.Lease/LeaseGrant",
    _STATUS: "etcdserverpb.Maintenance/Status",
    _TIME_TO_LIVE: "etcdserverpb.Lease/LeaseTimeToLive",
}


class EtcdClient:
    seen: Revision  # newest revision in any answer

    def __init__(self, endpoints: Sequence[EtcdEndpoint], *, timeout: float = REQUEST_TIMEOUT) -> None:
        self.seen = 0
        self._endpoints = tuple(endpoints)
        self._preferred = 0
        self._timeout = timeout
        self._closed = False

    @property
    def endpoint(self) -> EtcdEndpoint:
        """The preferred member."""
        return self._endpoints[self._preferred]

    @property
    def is_open(self) -> bool:
        return not self._closed

    async def range(self, request: Message) -> Message:
        return await self._call(_RANGE, request)

    async def txn(self, request: Message) -> Message:
        return await self._call(_TXN, request, writes=True)

    async def compact(self, request: Message) -> Message:
        return await self._call(_COMPACT, request)

    async def grant(self, request: Message) -> Message:
        """Grant a lease. Repeatable: a duplicate lease is unused and expires."""
        return await self._call(_GRANT, request)

    async def time_to_live(self, request: Message) -> Message:
        """Return the remaining time of a lease; -1 if gone."""
        return await self._call(_TIME_TO_LIVE, request)

    async def status(self) -> Message:
        return await self._call(_STATUS, rpc.StatusRequest())

    def ensure_open(self) -> None:
        """Raise Unavailable if closed."""
        if self._closed:
            raise Unavailable("the store is closed")

    def saw(self, revision: Revision) -> None:
        self.seen = max(self.seen, revision)

    def avoid(self, endpoint: EtcdEndpoint) -> None:
        """Prefer the next member after a failure of this one."""
        if endpoint is self.endpoint:
            self._preferred = (self._preferred + 1) % len(self._endpoints)

    async def close(self) -> None:
        """Close the channels, with a short grace period for running calls."""
        self._closed = True
        await asyncio.gather(*(endpoint.channel.close(_CLOSE_GRACE) for endpoint in self._endpoints))

    async def _call(self, method: _Method, request: Message, *, writes: bool = False) -> Message:
        failure: CallFailure | None = None
        for endpoint in self._by_preference():
            self.ensure_open()
            try:
                response = await self._sent(method, endpoint, request)
            except grpc.aio.AioRpcError as error:
                failure = failure_of(error, endpoint.url, wrote=writes)
            else:
                self.saw(response.header.revision)
                return response
            if failure.of_member:
                self.avoid(endpoint)
            if not failure.repeatable:
                break
        assert failure is not None, "there is at least one endpoint"
        raise failure.error

    def _sent(self, method: _Method, endpoint: EtcdEndpoint, request: Message) -> Awaitable[Message]:
        if CURRENT.get() is None:
            return self.answer(method(endpoint)(request, timeout=self._timeout))
        return self._traced(method, endpoint, request)

    async def _traced(self, method: _Method, endpoint: EtcdEndpoint, request: Message) -> Message:
        with outgoing_rpc(_NAMES[method], urlsplit(endpoint.url).netloc) as metadata:
            return await self.answer(method(endpoint)(request, timeout=self._timeout, metadata=metadata))

    async def answer(self, call: Awaitable[Message]) -> Message:
        """Await a call. Raises AioRpcError, and Unavailable if closing cut the call off."""
        try:
            return await call
        except asyncio.CancelledError:
            # Closing a channel cancels its calls, but not the tasks that wait for them.
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 0:
                raise
            raise Unavailable("the connection to etcd was closed", uncertain=True) from None

    def _by_preference(self) -> Iterator[EtcdEndpoint]:
        first = self._preferred
        yield from self._endpoints[first:] + self._endpoints[:first]
