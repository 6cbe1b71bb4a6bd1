"""Availability checks without network access: the Service exists and has endpoints for the port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.proxy.transport import TransportConfig
from pilothouse.apiserver.webhook.service_resolver import ServiceUnresolved
from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part


@dataclass(frozen=True, slots=True)
class ServiceName:
    namespace: str
    name: str


class Services(Protocol):
    async def find(self, namespace: str, name: str) -> Json | None:
        """Return the Service, or None. Raises ServiceUnresolved if the answer is unknown at the moment."""

    async def slices(self, namespace: str, service: str) -> Sequence[Json]:
        """Return the EndpointSlices of the Service. Raises ServiceUnresolved."""

    async def follow(self, changed: Callable[[str, str], None], anything: Callable[[], None]) -> None:
        """Run forever, and call `changed` with namespace and name of each Service that changed or whose EndpointSlices
        changed. Call `anything` when changes may have been missed."""


@dataclass(frozen=True, slots=True)
class ServiceCheck:
    services: Services
    place: TransportConfig

    async def problem(self) -> Condition | None:
        """Return the condition of the first problem, in upstream's words; None if all checks pass."""
        place = self.place
        try:
            service = await self.services.find(place.namespace, place.service)
        except ServiceUnresolved as error:
            return _unknown("ServiceAccessError", f"{self._named} cannot be checked due to: {error}")
        if service is None:
            return unavailable("ServiceNotFound", f"{self._named} is not present")
        if service["spec"].get("type") != "ClusterIP":
            return None
        return await self._port_problem(service)

    async def _port_problem(self, service: Json) -> Condition | None:
        place = self.place
        port = next((each for each in service["spec"].get("ports") or () if each.get("port") == place.port), None)
        if port is None:
            return unavailable("ServicePortError", f"{self._named} is not listening on port {place.port}")
        try:
            slices = await self.services.slices(place.namespace, place.service)
        except ServiceUnresolved as error:
            return _unknown("EndpointsAccessError", f"{self._named} cannot be checked due to: {error}")
        if not slices:
            return unavailable("EndpointsNotFound", f"cannot find endpointslices for {self._named}")
        name = port.get("name") or ""
        if any(_has_endpoint(each, name) for each in slices):
            return None
        why = f"endpointslices for {self._named} have no addresses with port name {quote(name)}"
        return unavailable("MissingEndpoints", why)

    @property
    def _named(self) -> str:
        return f"service/{self.place.service} in {quote(self.place.namespace)}"


def unavailable(reason: str, message: str) -> Condition:
    return Condition(AVAILABLE, "False", reason, message)


def _unknown(reason: str, message: str) -> Condition:
    return Condition(AVAILABLE, "Unknown", reason, message)


def _has_endpoint(endpoint_slice: Json, port_name: str) -> bool:
    endpoints, ports = endpoint_slice.get("endpoints") or (), endpoint_slice.get("ports") or ()
    ready = any(part(each, "conditions").get("ready") is not False for each in endpoints)
    return ready and any(each.get("name") == port_name and each.get("port") is not None for each in ports)
