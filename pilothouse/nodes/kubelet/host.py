"""The pods that the simulated kubelets answer for, and what their containers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.containers.container import Containers, spec_of


class PodSource(Protocol):
    """The pods as the simulation knows them. Nobody changes them."""

    def get(self, namespace: str, name: str) -> Json | None: ...

    def on_node(self, node: str) -> Iterable[Json]: ...

    async def changed(self, namespace: str, name: str) -> None:
        """Returns when the pod has changed, or is gone."""


class Host:
    def __init__(self, pods: PodSource, behavior: Callable[[Json, str], ContainerBehavior]) -> None:
        """`behavior` is that of a container of the pod, by its name."""
        self.pods = pods
        self.behavior = behavior
        self.containers = Containers()


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
