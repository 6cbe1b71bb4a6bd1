"""The pods that the simulated kubelets answer for, and what their containers do."""

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
"""Called with the pod, the name of the container, and how it ends."""


class Host:
    """`pods` are the pods that an informer knows, `fleet` has the simulated nodes.

    `ended` is called when the command of a container, run to see what it logs, exceeds its budget.
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
        """Return those of which anything is heard."""
        return [node for name, node in self._fleet.nodes.items() if self._fleet.is_alive(name)]

    async def objects_for(self, pod: Json, spec: Json, budget: Budget) -> Objects:
        """Return what config maps and secrets give to the container now. Raises Killed."""

        async def read(resource: str, name: str) -> Json:
            with suppress(NotFound):
                return await self._client.resource("v1", resource, namespace=namespace_of(pod)).get(name)
            return {}

        return await objects_for(pod, spec, read, budget)

    def still_runs(self, pod: Json, container: str) -> bool:
        """Whether the container is in the same run as when `pod` was read."""
        now = self.pods.get(namespace_of(pod), name_of(pod)) or {}
        run, then = (container_status(each, container).get("state") or {} for each in (now, pod))
        return "running" in run and run == then and uid_of(now) == uid_of(pod)

    def answers_for(self, node: str) -> bool:
        return self._fleet.is_alive(node)

    def behavior(self, pod: Json, container: str) -> ContainerBehavior:
        return self._behaviors.of_container(pod, container)


def container_status(pod: Json, name: str) -> Json:
    """Return the status of the container; nothing for one that has none yet."""
    status = pod.get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(kind) or ():
            if each.get("name") == name:
                found: Json = each
                return found
    return {}


def running_spec(pod: Json, name: str) -> Json | None:
    """Return the spec of a container that runs now; None for one that does not."""
    state = container_status(pod, name).get("state") or {}
    return spec_of(pod, name) if "running" in state else None
