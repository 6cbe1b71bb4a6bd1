"""State of the simulated kubelets: pods from an informer, and behaviour of their containers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeAlias

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import last_known_state
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, part, uid_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.containers.budget import Budget, Machine
from pilothouse.nodes.containers.container import Containers, spec_of
from pilothouse.nodes.containers.service_variables import MASTER_SERVICE
from pilothouse.nodes.containers.volumes import Objects, contents_for
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.pods.world import Exceeded

ContainerEnded: TypeAlias = Callable[[Json, str, Exceeded], None]
"""Called with pod, container name and exceeded budget."""
ContainerCommanded: TypeAlias = Callable[[Json, str], None]
"""Called with pod and container name."""

_NODE_INDEX: Final = "node of the kubelet"
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


class Host:
    """`pods` and `services`: from informers. `fleet`: the simulated nodes.

    `ended` is called if a container's command, executed for its log, exceeds its budget; `commanded` after a command
    from outside in a container with exec probes.
    """

    def __init__(
        self,
        pods: SharedIndexInformer,
        services: SharedIndexInformer,
        behaviors: Behaviors,
        fleet: Fleet,
        client: Client,
        ended: ContainerEnded,
        commanded: ContainerCommanded,
    ) -> None:
        self.containers = Containers()
        self.machine = Machine()
        self.pods = KnownPods(pods, gone=self.containers.forget)
        self.ended, self.commanded = ended, commanded
        self._services = services.indexer
        self._behaviors, self._fleet, self._client = behaviors, fleet, client

    def nodes(self) -> list[Json]:
        """Return the nodes with heartbeats."""
        return [node for name, node in self._fleet.nodes.items() if self._fleet.is_alive(name)]

    async def objects_for(self, pod: Json, spec: Json, budget: Budget) -> Objects:
        """Return the objects that the container depends on. Raises Killed."""

        async def read(resource: str, name: str) -> Json:
            with suppress(NotFound):
                return await self._client.resource("v1", resource, namespace=namespace_of(pod)).get(name)
            return {}

        services = [*self._services.by_index(NAMESPACE_INDEX, namespace_of(pod))]
        master = self._services.get_by_key(MASTER_SERVICE)
        if master is not None and namespace_of(master) != namespace_of(pod):
            services.append(master)
        allocatable = part(self._fleet.nodes.get(node_name(pod)) or {}, "status", "allocatable")
        return Objects(await contents_for(pod, spec, read, budget), services, allocatable)

    def still_runs(self, pod: Json, container: str) -> bool:
        """Return whether the container still runs as in `pod`, without a restart."""
        now = self.pods.get(namespace_of(pod), name_of(pod)) or {}
        run, then = (container_status(pod_state, container).get("state") or {} for pod_state in (now, pod))
        return "running" in run and run == then and uid_of(now) == uid_of(pod)

    def answers_for(self, node: str) -> bool:
        return self._fleet.is_alive(node)

    def behavior(self, pod: Json, container: str) -> ContainerBehavior:
        return self._behaviors.of_container(pod, container)


def container_status(pod: Json, name: str) -> Json:
    """Return the status of the container; empty if absent."""
    status = pod.get("status") or {}
    for kind in _STATUSES:
        for container in status.get(kind) or ():
            if container.get("name") == name:
                found: Json = container
                return found
    return {}


def running_spec(pod: Json, name: str) -> Json | None:
    """Return the spec of a running container, else None."""
    state = container_status(pod, name).get("state") or {}
    return spec_of(pod, name) if "running" in state else None


def running_containers(pod: Json) -> frozenset[str]:
    """Return the names of the running containers."""
    status = pod.get("status") or {}
    statuses = (each for kind in _STATUSES for each in status.get(kind) or ())
    return frozenset(each["name"] for each in statuses if "running" in (each.get("state") or {}))


class KnownPods:
    """Pod lookup from an informer, by name, node and namespace."""

    def __init__(self, informer: SharedIndexInformer, gone: Callable[[str], None]) -> None:
        """`gone` is called with the UID of each deleted pod."""
        self._indexer = informer.indexer
        self._gone = gone
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        informer.add_indexers({_NODE_INDEX: lambda pod: (node_name(pod),)})
        informer.add_event_handler(ResourceEventHandlerFuncs(update=self._updated, delete=self._deleted))

    def get(self, namespace: str, name: str) -> Json | None:
        return self._indexer.get_by_key(f"{namespace}/{name}")

    def on_node(self, node: str) -> Iterable[Json]:
        return self._indexer.by_index(_NODE_INDEX, node)

    def all_in(self, namespace: str) -> Iterable[Json]:
        """Return the pods of a namespace; all pods for ""."""
        return self._indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else self._indexer.list()

    async def changed(self, namespace: str, name: str) -> None:
        """Wait for a change or the deletion of the pod."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(f"{namespace}/{name}", set())
        waiting.add(change)
        try:
            await change
        finally:
            waiting.discard(change)
            if not waiting and self._waiting.get(f"{namespace}/{name}") is waiting:
                del self._waiting[f"{namespace}/{name}"]

    def _updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._gone(uid_of(old))
        self._changed(new)

    def _changed(self, pod: Json) -> None:
        for change in self._waiting.get(f"{namespace_of(pod)}/{name_of(pod)}", ()):
            if not change.done():
                change.set_result(None)

    def _deleted(self, deleted: Deleted) -> None:
        if (pod := last_known_state(deleted)) is not None:
            self._gone(uid_of(pod))
            self._changed(pod)
