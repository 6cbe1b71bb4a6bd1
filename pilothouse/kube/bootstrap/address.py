"""Where this server is reached."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from pilothouse.machinery.dataclass import dataclass


@dataclass(slots=True)
class PublicAddress:
    """Of a port that the system is to choose, the number is known once the server listens."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Then it means another machine to everybody who reads it, and is no endpoint."""
        return ip_address(self.ip).is_loopback

    def listens_on(self, port: int) -> None:
        self.port = port


def kubernetes_service_ip(service_cidr: str) -> str:
    """Where the `kubernetes` service is: the first address of the range."""
    return str(ip_network(service_cidr, strict=False)[1])
