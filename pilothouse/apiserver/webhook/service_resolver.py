"""Service resolution for webhooks and aggregated APIs."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    host: str
    port: int


class ServiceUnresolved(Exception):
    """The Service, its port or its endpoints are missing; the text is upstream's."""


class ServiceResolver(Protocol):
    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        """Return an address for a single connection; the next call may return another. Raises ServiceUnresolved."""


class NoServices:
    """Resolver of a server without Services."""

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        raise ServiceUnresolved(f"service {quote(name)} not found")
