"""Plain HTTP on loopback addresses, without client certificates."""

from __future__ import annotations

import ipaddress

from pilothouse.apiserver.serving.server import ListenEndpoint


def insecure_endpoint(host: str, port: int) -> ListenEndpoint:
    """Return the endpoint. Raises ValueError for non-loopback addresses."""
    if not (host == "localhost" or ipaddress.ip_address(host).is_loopback):
        raise ValueError(f"plain HTTP is served on loopback addresses only, not on {host}")
    return ListenEndpoint("127.0.0.1" if host == "localhost" else host, port)
