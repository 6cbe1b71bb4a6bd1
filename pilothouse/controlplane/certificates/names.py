"""The names that the serving certificate must hold for."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

from pilothouse.machinery.dataclass import dataclass

_ALWAYS: Final = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class ServingNames:
    dns: frozenset[str]
    ips: frozenset[str]

    def covers(self, other: ServingNames) -> bool:
        return self.dns >= other.dns and self.ips >= other.ips


def serving_names(*, bind_address: str, hostnames: Iterable[str], service_ip: str) -> ServingNames:
    """`hostnames` may be names or addresses. An unspecified bind address has no name of its own."""
    dns: set[str] = set()
    ips: set[str] = set()
    for name in (*_ALWAYS, socket.gethostname().lower(), bind_address, service_ip, *hostnames):
        address = _address(name)
        if address is None:
            dns.add(name)
        elif not address.is_unspecified:
            ips.add(str(address))
    return ServingNames(frozenset(dns - {""}), frozenset(ips))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
