"""Where the pods behind a Service are reached: what webhooks and aggregated APIs ask before they connect."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    host: str
    port: int


class ServiceUnresolved(Exception):
    """The Service, its port or its endpoints are missing; the text says which, in upstream's words."""


class ServiceResolver(Protocol):
    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        """Raises ServiceUnresolved. The answer is for one connection: the next may go elsewhere."""


class NoServices:
    """For a server that knows of no Services."""

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        raise ServiceUnresolved(f"service {quote(name)} not found")
