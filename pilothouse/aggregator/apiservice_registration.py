"""The apiserviceRegistrationController: adds and removes the proxy handlers of APIServices."""

from __future__ import annotations

import asyncio

from pilothouse.aggregator.apiservices import APIServices
from pilothouse.aggregator.handler_manager import APIHandlerManager
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.controller import Controller
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.objects import Json, name_of

_NAME = "APIServiceRegistrationController"


class APIServiceRegistrationController:
    def __init__(self, api_services: APIServices, handlers: APIHandlerManager) -> None:
        self._api_services = api_services
        self._handlers = handlers
        self._controller: Controller[str] = Controller(
            _NAME, self._sync, queue=RateLimitingQueue(_NAME, registry=REGISTRY)
        )
        self.handlers_synced = asyncio.Event()
        """Set once every APIService present at the start has a handler. Earlier 404s are not reliable."""
        api_services.listen(self._enqueue)

    async def run(self) -> None:
        await self._api_services.wait_synced()
        for api_service in self._api_services.all():
            self._handlers.add_api_service(api_service)
        self.handlers_synced.set()
        await self._controller.run()

    def _enqueue(self, api_services: list[Json]) -> None:
        for api_service in api_services:
            self._controller.queue.add(name_of(api_service))

    async def _sync(self, name: str) -> None:
        api_service = self._api_services.get(name)
        if api_service is None:
            self._handlers.remove_api_service(name)
        else:
            self._handlers.add_api_service(api_service)
