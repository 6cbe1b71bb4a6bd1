"""Services that select a pod, found through an index over selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX, Indexer
from pilothouse.client.cache.keys import last_known_state, meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.controllers.endpointslice import pods
from pilothouse.machinery.objects import Json, labels_of, namespace_of, part, resource_version_of

SELECTOR_INDEX = "selector"


def selector_of(service: Json) -> dict[str, str]:
    """Return the selector; empty if the endpoints are not derived from pods."""
    return part(service, "spec", "selector")


def selects(service: Json, pod: Json) -> bool:
    labels = labels_of(pod)
    return all(labels.get(name) == value for name, value in selector_of(service).items())


def selected_pods(service: Json, all_pods: Indexer) -> list[Json]:
    found = all_pods.by_index(NAMESPACE_INDEX, namespace_of(service))
    return [pod for pod in found if selects(service, pod)]


class SelectingServices:
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
        if pods.state(old) != pods.state(new):
            return self.of(old) | self.of(new)
        return self.of(old) ^ self.of(new) if labels_of(old) != labels_of(new) else set()

    def handler(self, enqueue: Callable[[Iterable[str]], None]) -> ResourceEventHandlerFuncs:
        """Return a handler that enqueues the keys of services affected by a pod."""

        def on_delete(obj: Deleted) -> None:
            if (pod := last_known_state(obj)) is not None:
                enqueue(self.of(pod))

        return ResourceEventHandlerFuncs(
            add=lambda pod: enqueue(self.of(pod)),
            update=lambda old, new: enqueue(self.affected(old, new)),
            delete=on_delete,
        )


def _one_label(service: Json) -> Iterator[str]:
    """Yield the index key: one label of the selector suffices, because every selected pod has it."""
    selector = selector_of(service)
    if selector:
        name = min(selector)
        yield f"{namespace_of(service)}/{name}={selector[name]}"
