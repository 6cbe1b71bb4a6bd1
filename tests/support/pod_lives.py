"""The life of a pod on a simulated node, played without a server: time passes as fast as there is something to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pilothouse.client import Json
from pilothouse.nodes.behavior.model import NOTHING_SPECIAL, ContainerBehavior
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.pods.machine import advance
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.pods.restore import restore
from pilothouse.nodes.pods.status import Addresses, new_status
from pilothouse.nodes.pods.world import Obstacle, Refusal, World

START = 1_700_000_000.0
ADDRESSES = Addresses(("172.18.0.2",), ("10.1.0.2",))


def pod(*containers: Json, init: tuple[Json, ...] = (), **spec: Any) -> Json:
    shown = list(containers) or [container("app")]
    metadata = {"name": "p", "namespace": "default", "uid": "u", "generation": 1}
    return {"metadata": metadata, "spec": {"containers": shown, "initContainers": list(init), **spec}, "status": {}}


def container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": "nginx:1", "imagePullPolicy": "IfNotPresent", **fields}


@dataclass
class Life:
    """`status` is what the API has."""

    pod: Json
    behaviors: Mapping[str, ContainerBehavior] = field(default_factory=dict)
    config: SimulationConfig = field(default_factory=SimulationConfig)
    obstacle: Obstacle | None = None
    allocatable: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None
    now: float = START
    writes: int = 0
    events: list[PodEvent] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = restore(self.pod, self.now)
        self.due: float | None = self.now

    @property
    def status(self) -> Json:
        status: Json = self.pod["status"]
        return status

    def step(self) -> None:
        """Whatever is due at the moment happens, and is written."""
        world = World(self.config, self._behavior, "u", self.obstacle, self.allocatable, self.refusal)
        step = advance(self.pod, self.state, world, self.now)
        self.state, self.due = step.state, step.due
        self.events += step.events
        status = new_status(self.pod, self.state, ADDRESSES, self.now)
        if status is not None:
            self.pod["status"] = status
            self.writes += 1
            self.phases.append(status["phase"])

    def _behavior(self, name: str) -> ContainerBehavior:
        return self.behaviors.get(name, NOTHING_SPECIAL)

    def pass_time(self, seconds: float = 3600.0) -> None:
        """Until there is nothing left to do, or so much time has passed."""
        end = self.now + seconds
        self.step()
        while self.due is not None and self.due <= end:
            self.now = max(self.now, self.due)
            self.step()
        self.now = end if self.due is not None else self.now

    def restart(self) -> None:
        """The server is killed and comes back: all that is known is in the API."""
        self.state = restore(self.pod, self.now)

    def delete(self, grace: int = 30) -> None:
        self.pod["metadata"] |= {"deletionTimestamp": "2023-11-14T22:13:20Z", "deletionGracePeriodSeconds": grace}

    def condition(self, kind: str) -> Json:
        found: Json = next(each for each in self.status["conditions"] if each["type"] == kind)
        return found

    def container(self, name: str = "app") -> Json:
        lists = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        found: Json = next(each for kind in lists for each in self.status.get(kind) or () if each["name"] == name)
        return found

    @property
    def reasons(self) -> list[str]:
        return [each.reason for each in self.events]
