"""A member of an etcd cluster: address and calls."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from aetcd import rpc

from pilothouse.apiserver.storage.errors import StorageError
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
