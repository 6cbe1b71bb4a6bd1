"""Scheduling of service syncs, shared by the endpoints and endpointslice controllers.

A service with many pods is slow to sync, and its pods change in bursts. Changes are batched, so that a service takes at
most a tenth of the time.
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
from pilothouse.machinery.objects import Json, part

MAX_RETRIES = 15
STALE = 0.05
"""Seconds until a stale cache is checked again."""

_SHARE = 10
_LEAST = 0.01
"""Minimum batch period; covers pod changes caused by one request."""


def has_endpoints_of_pods(service: Json) -> bool:
    return part(service, "spec").get("type") != "ExternalName" and bool(selector_of(service))


class ServiceSyncs:
    _took: dict[str, float]  # duration in seconds of each service's last sync

    def __init__(self, context: ControllerContext, queue: RateLimitingQueue[str], *, batch_period: float) -> None:
        """`queue` takes service keys; `batch_period` is the delay over which pod changes are batched."""
        self._clock, self._queue, self._batch_period = context.clock, queue, batch_period
        self._services, self._pods = context.informer(SERVICES), context.informer(PODS)
        self._trigger_times = TriggerTimeTracker()
        self._took = {}

    @property
    def caches(self) -> tuple[SharedIndexInformer, ...]:
        return self._pods, self._services

    def follow(self) -> None:
        """Enqueue services from now on when they or their pods change."""
        self._services.add_event_handler(enqueue_keys(self._queue))
        self._pods.add_event_handler(SelectingServices(self._services).handler(self._pod_changed))

    def _pod_changed(self, services: Iterable[str]) -> None:
        for key in services:
            self._queue.add_after(key, self.delay(key))

    def delay(self, key: str) -> float:
        """Return the delay in seconds for changes other than the service's own."""
        return max(self._batch_period, _LEAST, _SHARE * self._took.get(key, 0.0))

    def service(self, key: str) -> Json | None:
        return self._services.indexer.get_by_key(key)

    def selected_pods(self, service: Json) -> list[Json]:
        return selected_pods(service, self._pods.indexer)

    def trigger_time(self, service: Json, selected: list[Json]) -> str:
        """Return the earliest time of the changes since the last call; empty without changes."""
        return self._trigger_times.compute(service, selected)

    @contextmanager
    def timed(self, key: str) -> Iterator[None]:
        """Record the duration of a successful sync."""
        started = self._clock.now()
        yield
        self._took[key] = self._clock.now() - started

    def forget(self, key: str) -> None:
        self._trigger_times.forget(key)
        self._took.pop(key, None)
