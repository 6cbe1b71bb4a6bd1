"""The remote availableConditionController: maintains the condition of APIServices with a service.

An APIService is synced when the APIService, its Service or its EndpointSlices change, every 30 s, and with back-off
while its server does not answer.
"""

from __future__ import annotations

import asyncio

from pilothouse.aggregator.apiservice.order import group_version_of
from pilothouse.aggregator.apiservice.strategy import AVAILABLE
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.availability.checks import ServiceCheck, ServiceName, Services, unavailable
from pilothouse.aggregator.availability.controller import AvailableController, new_backoff
from pilothouse.aggregator.availability.discovery_check import DiscoveryCheck
from pilothouse.aggregator.availability.metrics import forget_availability
from pilothouse.aggregator.availability.status import AvailabilityStatus
from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.aggregator.proxy.transport import TransportConfig
from pilothouse.client.controller import Requeue
from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.objects import Json, name_of

_NAME = "RemoteAvailabilityController"
_WORKERS = 50  # most workers wait for unresponsive servers
_SETTLED = 0.05
_PASSED = Condition(AVAILABLE, "True", "Passed", "all checks passed")
_LEGACY = "v1."


class RemoteAvailableController(AvailableController):
    _by_service: dict[ServiceName, set[str]]  # service → names of its APIServices

    def __init__(
        self, api_services: APIServices, services: Services, *, proxy: ProxyConfig, status: AvailabilityStatus
    ) -> None:
        self._services = services
        self._proxy = proxy
        self._status = status
        self._by_service = {}
        self._backoff = new_backoff()
        super().__init__(_NAME, api_services, workers=_WORKERS)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run())
            tasks.create_task(self._services.follow(self._service_changed, self._enqueue_all))

    def _enqueue(self, api_services: list[Json]) -> None:
        """Queue remote APIServices and rebuild the index. Local APIServices, the majority, skip both."""
        remote = [each for each in api_services if each["spec"].get("service") is not None]
        if remote:
            self._by_service = _by_service(self._api_services.all())
        for api_service in remote:
            self._controller.queue.add(name_of(api_service))

    def _service_changed(self, namespace: str, name: str) -> None:
        """Queue the APIServices of a Service after a delay: Service, EndpointSlices and APIService often change
        together."""
        for api_service in self._by_service.get(ServiceName(namespace, name), ()):
            self._controller.queue.add_after(api_service, _SETTLED)

    async def _sync(self, name: str) -> Requeue | None:
        api_service = self._api_services.get(name)
        if api_service is None:
            forget_availability(name)
        if api_service is None or api_service["spec"].get("service") is None:
            self._backoff.forget(name)
            return None
        condition = await self._condition(api_service)
        await self._status.put(api_service, condition)
        if condition.reason == "FailedDiscoveryCheck":
            return Requeue(self._backoff.when(name))
        self._backoff.forget(name)
        return None

    async def _condition(self, api_service: Json) -> Condition:
        place = TransportConfig.of(api_service)
        problem = await ServiceCheck(self._services, place).problem()
        if problem is not None:
            return problem
        transport = self._proxy.transports.get(place)
        version = group_version_of(api_service)
        failure = await DiscoveryCheck(
            transport,
            self._proxy.services,
            f"/api/{version.version}" if name_of(api_service) == _LEGACY else f"/apis/{version}",
        ).problem()
        return unavailable("FailedDiscoveryCheck", failure) if failure else _PASSED


def _by_service(api_services: list[Json]) -> dict[ServiceName, set[str]]:
    found: dict[ServiceName, set[str]] = {}
    for api_service in api_services:
        if (service := api_service["spec"].get("service")) is not None:
            key = ServiceName(service.get("namespace") or "", service.get("name") or "")
            found.setdefault(key, set()).add(name_of(api_service))
    return found
