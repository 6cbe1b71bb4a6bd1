"""Plain HTTP, for this machine only. Without TLS there are no client certificates."""

from __future__ import annotations

import ipaddress

from pilothouse.apiserver.serving.server import ListenEndpoint


def insecure_endpoint(host: str, port: int) -> ListenEndpoint:
    """Raises ValueError for any address but a loopback one."""
    if not (host == "localhost" or ipaddress.ip_address(host).is_loopback):
        raise ValueError(f"plain HTTP is served on loopback addresses only, not on {host}")
    return ListenEndpoint("127.0.0.1" if host == "localhost" else host, port)
