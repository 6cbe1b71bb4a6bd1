"""Scheduling of service syncs, shared by the endpoints and endpointslice controllers.

A service with many pods is slow to sync, and its pods change in bursts. Changes are batched, so that a service takes at
most a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX, Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.controller import enqueue_keys
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.endpointslice.endpoint import endpoint_state
from pilothouse.controllers.resources import PODS, SERVICES
from pilothouse.kinds.pods import ready_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, part, resource_version_of
from pilothouse.machinery.times import format_time, optional_time

MAX_RETRIES = 15
STALE = 0.05
"""Seconds until a stale cache is checked again."""

_SHARE = 10
_LEAST = 0.01
"""Minimum batch period; covers pod changes caused by one request."""
SELECTOR_INDEX = "selector"
ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


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


def selector_of(service: Json) -> dict[str, str]:
    """Return the selector; empty if the endpoints are not derived from pods."""
    return part(service, "spec", "selector")


def selects(service: Json, pod: Json) -> bool:
    labels = labels_of(pod)
    return all(labels.get(name) == value for name, value in selector_of(service).items())


def selected_pods(service: Json, all_pods: Indexer) -> list[Json]:
    pods = all_pods.by_index(NAMESPACE_INDEX, namespace_of(service))
    return [pod for pod in pods if selects(service, pod)]


class SelectingServices:
    """Finds the services that select a pod, through an index over selectors."""

    def __init__(self, services: SharedIndexInformer) -> None:
        self._services = services.indexer
        if SELECTOR_INDEX not in services.indexer.indexers:
            services.add_indexers({SELECTOR_INDEX: _one_label})

    def of(self, pod: Json) -> set[str]:
        """Return the keys of services that select the pod."""
        namespace = namespace_of(pod)
        candidates = (
            service
            for name, value in labels_of(pod).items()
            for service in self._services.by_index(SELECTOR_INDEX, f"{namespace}/{name}={value}")
        )
        return {meta_namespace_key(service) for service in candidates if selects(service, pod)}

    def affected(self, old: Json, new: Json) -> set[str]:
        """Return the keys of services whose endpoints may change with the pod."""
        if resource_version_of(old) == resource_version_of(new):
            return set()
        if endpoint_state(old) != endpoint_state(new):
            return self.of(old) | self.of(new)
        return self.of(old) ^ self.of(new) if labels_of(old) != labels_of(new) else set()

    def handler(self, enqueue: Callable[[Iterable[str]], None]) -> ResourceEventHandlerFuncs:
        """Return a handler that enqueues the keys of services affected by a pod."""

        return ResourceEventHandlerFuncs(
            add=lambda pod: enqueue(self.of(pod)),
            update=lambda old, new: enqueue(self.affected(old, new)),
            delete=with_last_state(lambda pod: enqueue(self.of(pod))),
        )


def _one_label(service: Json) -> Iterator[str]:
    """Yield the index key: one label of the selector suffices, because every selected pod has it."""
    selector = selector_of(service)
    if selector:
        name = min(selector)
        yield f"{namespace_of(service)}/{name}={selector[name]}"


@dataclass(frozen=True, slots=True)
class _SeenTimes:
    service: datetime | None
    pods: dict[str, datetime]


class TriggerTimeTracker:
    """Tracks trigger times of endpoint changes, from which proxies measure programming latency."""

    _seen: dict[str, _SeenTimes]  # by service key

    def __init__(self) -> None:
        self._seen = {}

    def compute(self, service: Json, pods: Sequence[Json]) -> str:
        """Return the earliest time of the changes since the last call; empty without changes."""
        key, created = meta_namespace_key(service), optional_time(metadata(service).get("creationTimestamp"))
        ready = {name_of(pod): optional_time(ready_condition(pod).get("lastTransitionTime")) for pod in pods}
        times = {name: moment for name, moment in ready.items() if moment is not None}
        before = self._seen.get(key)
        self._seen[key] = _SeenTimes(created, times)
        if before is None:
            return _written(created)
        changed = [moment for name, moment in times.items() if _is_later(moment, before.pods.get(name))]
        if created is not None and _is_later(created, before.service):
            changed.append(created)
        return _written(min(changed, default=None))

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)


def with_trigger_time(annotations: dict[str, str], trigger_time: str) -> dict[str, str]:
    kept = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return kept | ({ANNOTATION: trigger_time} if trigger_time else {})


def _is_later(moment: datetime, before: datetime | None) -> bool:
    return before is None or moment > before


def _written(moment: datetime | None) -> str:
    return "" if moment is None else format_time(moment)
