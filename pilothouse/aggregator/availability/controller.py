"""The availableConditionControllers, local and remote.

The remote controller maintains the condition of APIServices with a service. An APIService is synced when the
APIService, its Service or its EndpointSlices change, every 30 s, and with back-off while its server does not answer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from pilothouse.aggregator.apiservice.apiservices import APIServices, group_version_of
from pilothouse.aggregator.apiservice.strategy import AVAILABLE, LOCAL_AVAILABLE
from pilothouse.aggregator.availability.checks import DiscoveryCheck, ServiceCheck, ServiceName, Services, unavailable
from pilothouse.aggregator.availability.status import AvailabilityStatus, forget_availability
from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.aggregator.proxy.transport import TransportConfig
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.workqueue.rate_limiting import ItemExponentialFailureRateLimiter, RateLimitingQueue
from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.objects import Json, name_of

_LOCAL_NAME, _LOCAL_WORKERS = "LocalAvailabilityController", 5
_RESYNC = 30.0
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.005, 30.0

_NAME = "RemoteAvailabilityController"
_WORKERS = 50  # most workers wait for unresponsive servers
_SETTLED = 0.05
_PASSED = Condition(AVAILABLE, "True", "Passed", "all checks passed")
_LEGACY = "v1."


class AvailableController(ABC):
    def __init__(self, name: str, api_services: APIServices, *, workers: int) -> None:
        self._api_services = api_services
        queue: RateLimitingQueue[str] = RateLimitingQueue(name, rate_limiter=new_backoff(), registry=REGISTRY)
        self._controller = Controller(name, self._sync, caches=(api_services,), workers=workers, queue=queue)
        api_services.listen(self._enqueue)

    @abstractmethod
    def _enqueue(self, api_services: list[Json]) -> None:
        """Queue the APIServices of this controller."""

    @abstractmethod
    async def _sync(self, name: str) -> Requeue | None: ...

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run())
            tasks.create_task(self._resync())

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(_RESYNC)
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        self._enqueue(self._api_services.all())


def new_backoff() -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(_SHORTEST_BACKOFF, _LONGEST_BACKOFF)


class LocalAvailableController(AvailableController):
    def __init__(self, api_services: APIServices, status: AvailabilityStatus) -> None:
        self._status = status
        super().__init__(_LOCAL_NAME, api_services, workers=_LOCAL_WORKERS)

    def _enqueue(self, api_services: list[Json]) -> None:
        for api_service in api_services:
            if api_service["spec"].get("service") is None:
                self._controller.queue.add(name_of(api_service))

    async def _sync(self, name: str) -> None:
        api_service = self._api_services.get(name)
        if api_service is None:
            forget_availability(name)
        elif api_service["spec"].get("service") is None:
            await self._status.put(api_service, LOCAL_AVAILABLE)


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
        remote = [service for service in api_services if service["spec"].get("service") is not None]
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
    index: dict[ServiceName, set[str]] = {}
    for api_service in api_services:
        if (service := api_service["spec"].get("service")) is not None:
            key = ServiceName(service.get("namespace") or "", service.get("name") or "")
            index.setdefault(key, set()).add(name_of(api_service))
    return index
