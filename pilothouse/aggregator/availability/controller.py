"""The availableConditionControllers: their common part, and the local controller.

A controller syncs an APIService on change, every 30 s, and with back-off after a failure. Local APIServices are always
available.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from pilothouse.aggregator.apiservice.strategy import LOCAL_AVAILABLE
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.availability.metrics import forget_availability
from pilothouse.aggregator.availability.status import AvailabilityStatus
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.workqueue.rate_limiting import ItemExponentialFailureRateLimiter, RateLimitingQueue
from pilothouse.machinery.objects import Json, name_of

_LOCAL_NAME, _LOCAL_WORKERS = "LocalAvailabilityController", 5
_RESYNC = 30.0
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.005, 30.0


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
