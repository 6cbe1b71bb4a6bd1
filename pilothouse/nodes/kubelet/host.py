"""The pods that the simulated kubelets answer for, and what their containers do."""

from __future__ import annotations

from contextlib import suppress

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.nodes.behavior.behaviors import Behaviors
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.containers.container import Containers, spec_of
from pilothouse.nodes.containers.given import Objects, objects_for
from pilothouse.nodes.fleet.fleet import Fleet
from pilothouse.nodes.kubelet.pods import KnownPods


class Host:
    """`pods` are those that an informer knows, `fleet` has the nodes that are simulated."""

    def __init__(self, pods: SharedIndexInformer, behaviors: Behaviors, fleet: Fleet, client: Client) -> None:
        self.containers = Containers()
        self.pods = KnownPods(pods, gone=self.containers.forget)
        self._behaviors, self._fleet, self._client = behaviors, fleet, client

    def nodes(self) -> list[Json]:
        """Return those of which anything is heard."""
        return [node for name, node in self._fleet.nodes.items() if self._fleet.is_alive(name)]

    async def objects_for(self, pod: Json, spec: Json) -> Objects:
        """Return what config maps and secrets give to the container now."""

        async def read(resource: str, name: str) -> Json:
            with suppress(NotFound):
                return await self._client.resource("v1", resource, namespace=namespace_of(pod)).get(name)
            return {}

        return await objects_for(pod, spec, read)

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
