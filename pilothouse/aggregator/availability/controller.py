"""The part that both availableConditionControllers share: they look at an APIService when it changes, every 30 s, and
again after a failure, ever later.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from pilothouse.aggregator.apiservices import APIServices
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.client.controller.runner import Controller, Requeue
from pilothouse.client.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.objects import Json

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
        """Adds those that this controller is for to its queue."""

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
