"""The local availableConditionController: an APIService without a service is served here, and always available."""

from __future__ import annotations

from pilothouse.aggregator.apiservice.availability import LOCAL_AVAILABLE
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.availability.controller import AvailableController
from pilothouse.aggregator.availability.metrics import forget_availability
from pilothouse.aggregator.availability.status import AvailabilityStatus
from pilothouse.machinery.objects import Json, name_of

_NAME = "LocalAvailabilityController"
_WORKERS = 5


class LocalAvailableController(AvailableController):
    def __init__(self, api_services: APIServices, status: AvailabilityStatus) -> None:
        self._status = status
        super().__init__(_NAME, api_services, workers=_WORKERS)

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
