"""The openAPIAggregationController, for v2 and v3: polls the OpenAPI documents of aggregated servers every minute.

Failures back off up to an hour. A change of the APIService triggers a poll: any change after a failure, since the
server may be available again, otherwise a change of the spec.
"""

from __future__ import annotations

import logging
from typing import Protocol

from pilothouse.aggregator.download import DownloadFailed
from pilothouse.aggregator.openapi.v2_aggregator import RemoteService
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.logs import v
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.workqueue.rate_limiting import ItemExponentialFailureRateLimiter, RateLimitingQueue
from pilothouse.machinery.objects import Json, name_of

log = logging.getLogger(__name__)

V2_NAME, V3_NAME = "open_api_aggregation_controller", "open_api_v3_aggregation_controller"
SUCCESSFUL_UPDATE_DELAY = 60.0
FAILED_UPDATE_MAX_DELAY = 3600.0
FIRST_DELAY = 1.0
_WORKERS = 25
"""Enough workers that unresponsive servers do not delay the others."""


class DownloadedSpecs(Protocol):
    """OpenAPI documents of aggregated servers; `update` downloads."""

    def put(self, service: RemoteService) -> None: ...

    def remove(self, name: str) -> None: ...

    async def update(self, name: str) -> bool:
        """Download the documents. Returns False for an unknown name. Raises DownloadFailed."""


class OpenAPIAggregationController:
    def __init__(self, name: str, specs: DownloadedSpecs, *, clock: Clock = REAL_CLOCK) -> None:
        self._specs = specs
        self._known: dict[str, Json] = {}
        """APIService name → spec."""
        self._failures = ItemExponentialFailureRateLimiter(SUCCESSFUL_UPDATE_DELAY, FAILED_UPDATE_MAX_DELAY)
        queue: RateLimitingQueue[str] = RateLimitingQueue(name, registry=REGISTRY, clock=clock)
        self._controller = Controller(name, self._sync, workers=_WORKERS, queue=queue, clock=clock)

    def add_api_service(self, handler: Handler, api_service: Json) -> None:
        """Add or update an APIService. Local APIServices need no download."""
        name, spec = name_of(api_service), api_service["spec"]
        if spec.get("service") is None:
            self.remove_api_service(name)
            return
        self._specs.put(RemoteService.of(handler, api_service))
        if self._known.get(name) != spec or self._failures.num_requeues(name):
            self._failures.forget(name)
            self._controller.queue.add_after(name, FIRST_DELAY)
        self._known[name] = spec

    def remove_api_service(self, name: str) -> None:
        """Remove an APIService; a no-op if absent."""
        self._specs.remove(name)
        self._known.pop(name, None)
        self._failures.forget(name)

    async def run(self) -> None:
        await self._controller.run()

    async def _sync(self, name: str) -> Requeue | None:
        try:
            is_known = await self._specs.update(name)
        except DownloadFailed as failure:
            log.log(v(2), "loading the OpenAPI documents of %s failed: %s", name, failure)
            return Requeue(self._failures.when(name))
        self._failures.forget(name)
        return Requeue(SUCCESSFUL_UPDATE_DELAY) if is_known else None
