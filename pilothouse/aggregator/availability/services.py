"""The facts of Services that the aggregator needs. The server of the built-in groups stores them, and offers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class ServiceName:
    namespace: str
    name: str


class Services(Protocol):
    async def find(self, namespace: str, name: str) -> Json | None:
        """Raises ServiceUnresolved where nobody can say at the moment."""

    async def slices(self, namespace: str, service: str) -> Sequence[Json]:
        """The EndpointSlices of a Service. Raises ServiceUnresolved."""

    async def follow(self, changed: Callable[[str, str], None], anything: Callable[[], None]) -> None:
        """Run for ever, and tell of each Service (namespace, name) that has changed, or whose EndpointSlices have.
        `anything` is told when changes may have been missed.
        """
