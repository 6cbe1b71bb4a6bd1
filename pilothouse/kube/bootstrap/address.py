"""Addresses of this server and of the `kubernetes` service."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class PublicAddress:
    """The advertised address. A system-chosen port is known once the server listens."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Report whether the address is loopback, which is not a valid endpoint."""
        return ip_address(self.ip).is_loopback

    def listens_on(self, port: int) -> None:
        self.port = port


def kubernetes_service_ip(service_cidr: str) -> str:
    """Return the address of the `kubernetes` service: the first of the range."""
    return str(ip_network(service_cidr, strict=False)[1])
