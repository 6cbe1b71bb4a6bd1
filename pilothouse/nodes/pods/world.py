"""All that the life of a pod depends on besides the pod itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.config import SimulationConfig

BehaviorOf: TypeAlias = Callable[[str], ContainerBehavior]

_SHORTEST = 0.001


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a pod, or one of its containers, can not start yet."""

    container: str
    """Which container; empty for all."""
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not take a pod that was bound to it."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The command of a container exceeds the budget of its process: the kernel ends it."""

    after: float
    """Seconds since the container's start."""
    out_of_memory: bool


@dataclass(frozen=True, slots=True)
class World:
    config: SimulationConfig
    behavior: BehaviorOf
    """What a container of the pod does, by its name."""
    uid: str
    obstacle: Obstacle | None = None
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """What the node has for pods."""
    refusal: Refusal | None = None
    exceeded: Mapping[str, Exceeded] = field(default_factory=dict)
    """Containers that exceed their budget."""
    start_errors: Mapping[str, str] = field(default_factory=dict)
    """Containers that the kernel does not start, and why."""

    @property
    def delay(self) -> float:
        """How long something takes that takes a moment: for one pod always the same, so that what its containers do
        at the same time is told at the same time. Never nothing: or else what ends and begins again would for ever."""
        share = zlib.crc32(f"{self.config.seed}/{self.uid}".encode()) / 0xFFFFFFFF
        return max(self.config.delay * (1.0 + self.config.jitter * share), _SHORTEST)
