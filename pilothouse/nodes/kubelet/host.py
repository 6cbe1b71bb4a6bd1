"""State of the simulated kubelets: pods, and behaviour of their containers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.containers.budget import Budget, Machine
from pilothouse.nodes.containers.container import Containers, spec_of
from pilothouse.nodes.containers.given import Objects, objects_for
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.kubelet.pods import KnownPods
from pilothouse.nodes.pods.world import Exceeded

ContainerEnded: TypeAlias = Callable[[Json, str, Exceeded], None]
"""Called with pod, container name and exceeded budget."""


class Host:
    """`pods`: pods from an informer. `fleet`: the simulated nodes.

    `ended` is called if a container's command, executed for its log, exceeds its budget.
    """

    def __init__(
        self, pods: SharedIndexInformer, behaviors: Behaviors, fleet: Fleet, client: Client, ended: ContainerEnded
    ) -> None:
        self.containers = Containers()
        self.machine = Machine()
        self.pods = KnownPods(pods, gone=self.containers.forget)
        self.ended = ended
        self._behaviors, self._fleet, self._client = behaviors, fleet, client

    def nodes(self) -> list[Json]:
        """Return the nodes with heartbeats."""
        return [node for name, node in self._fleet.nodes.items() if self._fleet.is_alive(name)]

    async def objects_for(self, pod: Json, spec: Json, budget: Budget) -> Objects:
        """Return the contents of the ConfigMaps and Secrets of the container. Raises Killed."""

        async def read(resource: str, name: str) -> Json:
            with suppress(NotFound):
                return await self._client.resource("v1", resource, namespace=namespace_of(pod)).get(name)
            return {}

        return await objects_for(pod, spec, read, budget)

    def still_runs(self, pod: Json, container: str) -> bool:
        """Return whether the container still runs as in `pod`, without a restart."""
        now = self.pods.get(namespace_of(pod), name_of(pod)) or {}
        run, then = (container_status(each, container).get("state") or {} for each in (now, pod))
        return "running" in run and run == then and uid_of(now) == uid_of(pod)

    def answers_for(self, node: str) -> bool:
        return self._fleet.is_alive(node)

    def behavior(self, pod: Json, container: str) -> ContainerBehavior:
        return self._behaviors.of_container(pod, container)


def container_status(pod: Json, name: str) -> Json:
    """Return the status of the container; empty if absent."""
    status = pod.get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(kind) or ():
            if each.get("name") == name:
                found: Json = each
                return found
    return {}


def running_spec(pod: Json, name: str) -> Json | None:
    """Return the spec of a running container, else None."""
    state = container_status(pod, name).get("state") or {}
    return spec_of(pod, name) if "running" in state else None
