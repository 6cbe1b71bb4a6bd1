"""The syncs of services: when each is due, and what of its pods it works on.

The controllers that make Endpoints and EndpointSlices from pods follow services in the same way. A service with many
pods takes long to sync, and many pods change at once: the changes that come while it waits are done together, so that
no more than a tenth of the time goes into one service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller import enqueue_keys
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.endpointslice.selecting_services import SelectingServices, selected_pods, selector_of
from pilothouse.controllers.endpointslice.trigger_times import TriggerTimeTracker
from pilothouse.controllers.resources import PODS, SERVICES
from pilothouse.machinery.objects import Json

MAX_RETRIES = 15
STALE = 0.05
"""Seconds after which a cache that lags behind is looked at again."""

_SHARE = 10
_LEAST = 0.01
"""The changes that one request makes in many pods come within this time."""


def has_endpoints_of_pods(service: Json) -> bool:
    return (service.get("spec") or {}).get("type") != "ExternalName" and bool(selector_of(service))


class ServiceSyncs:
    _took: dict[str, float]  # seconds that the last sync of each service took

    def __init__(self, context: ControllerContext, queue: RateLimitingQueue[str], *, batch_period: float) -> None:
        """`queue` takes the keys of services; `batch_period` is how long a change of a pod waits for others."""
        self._clock, self._queue, self._batch_period = context.clock, queue, batch_period
        self._services, self._pods = context.informer(SERVICES), context.informer(PODS)
        self._trigger_times = TriggerTimeTracker()
        self._took = {}

    @property
    def caches(self) -> tuple[SharedIndexInformer, ...]:
        return self._pods, self._services

    def follow(self) -> None:
        """Enqueue a service from now on whenever it changes, or pods of it do."""
        self._services.add_event_handler(enqueue_keys(self._queue))
        self._pods.add_event_handler(SelectingServices(self._services).handler(self._pod_changed))

    def _pod_changed(self, services: Iterable[str]) -> None:
        for key in services:
            self._queue.add_after(key, self.delay(key))

    def delay(self, key: str) -> float:
        """Return how many seconds a change that is none of the service's own waits."""
        return max(self._batch_period, _LEAST, _SHARE * self._took.get(key, 0.0))

    def service(self, key: str) -> Json | None:
        return self._services.indexer.get_by_key(key)

    def selected_pods(self, service: Json) -> list[Json]:
        return selected_pods(service, self._pods.indexer)

    def trigger_time(self, service: Json, selected: list[Json]) -> str:
        """Return the earliest time of the changes since the last call; empty when there were none."""
        return self._trigger_times.compute(service, selected)

    @contextmanager
    def timed(self, key: str) -> Iterator[None]:
        """Remember how long a sync takes that succeeds."""
        started = self._clock.now()
        yield
        self._took[key] = self._clock.now() - started

    def forget(self, key: str) -> None:
        self._trigger_times.forget(key)
        self._took.pop(key, None)
