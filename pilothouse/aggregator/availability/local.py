"""The local availableConditionController: an APIService without a service is served here, and always available."""

from __future__ import annotations

import asyncio

from pilothouse.aggregator.apiservice.availability import LOCAL_AVAILABLE
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.availability.metrics import forget_availability
from pilothouse.aggregator.availability.status import AvailabilityStatus
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.client.controller.runner import Controller
from pilothouse.client.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.objects import Json, name_of

_NAME = "LocalAvailabilityController"
_WORKERS = 5
RESYNC = 30.0
SHORTEST_BACKOFF, LONGEST_BACKOFF = 0.005, 30.0


class LocalAvailableController:
    def __init__(self, api_services: APIServices, status: AvailabilityStatus) -> None:
        self._api_services = api_services
        self._status = status
        self._controller: Controller[str] = Controller(
            _NAME, self._sync, caches=(api_services,), workers=_WORKERS, queue=new_queue(_NAME)
        )
        api_services.listen(self._enqueue)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run())
            tasks.create_task(self._resync())

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(RESYNC)
            self._enqueue(self._api_services.all())

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


def new_queue(name: str) -> RateLimitingQueue[str]:
    limiter = ItemExponentialFailureRateLimiter(SHORTEST_BACKOFF, LONGEST_BACKOFF)
    return RateLimitingQueue(name, rate_limiter=limiter, registry=REGISTRY)
