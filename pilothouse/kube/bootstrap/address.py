"""The addresses under which this server and the `kubernetes` service are reached."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class PublicAddress:
    """The address that this server tells others. A port that the system chooses is known once the server listens."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it means another machine to everybody who reads it: such an address is no endpoint."""
        return ip_address(self.ip).is_loopback

    def listens_on(self, port: int) -> None:
        self.port = port


def kubernetes_service_ip(service_cidr: str) -> str:
    """Return the address of the `kubernetes` service: the first of the range."""
    return str(ip_network(service_cidr, strict=False)[1])
