"""External inputs of the pod state machine."""

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
    """The reason why a pod or container cannot start yet."""

    container: str
    """Container name; empty for all containers."""
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why the node rejects a bound pod."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A container command exceeded its budget and is killed."""

    after: float
    """Seconds since the container start."""
    out_of_memory: bool


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The result of an exec probe from a moment on."""

    after: float
    """Seconds since the container start."""
    succeeds: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class World:
    config: SimulationConfig
    behavior: BehaviorOf
    """Container name → behaviour."""
    uid: str
    obstacle: Obstacle | None = None
    allocatable: Mapping[str, str] = field(default_factory=dict)
    """Allocatable resources of the node."""
    refusal: Refusal | None = None
    exceeded: Mapping[str, Exceeded] = field(default_factory=dict)
    """Containers that exceeded their budget."""
    start_errors: Mapping[str, str] = field(default_factory=dict)
    """Containers that cannot be started → reason."""
    probes: Mapping[tuple[str, str], tuple[ProbeOutcome, ...]] = field(default_factory=dict)
    """(container, probe) → known outcomes of an exec probe, in the order of their times; the first is at 0."""

    @property
    def delay(self) -> float:
        """Delay of short operations. Constant per pod, so simultaneous transitions share one write; never 0, so restart
        loops make progress."""
        share = zlib.crc32(f"{self.config.seed}/{self.uid}".encode()) / 0xFFFFFFFF
        return max(self.config.delay * (1.0 + self.config.jitter * share), _SHORTEST)
