"""Disruption states of all zones. If every node of every zone is down, the fault is assumed on the controller's
side."""

from __future__ import annotations

from enum import Enum, auto

from pilothouse.client.clock import Clock
from pilothouse.controllers.nodelifecycle.config import NodeLifecycleConfig
from pilothouse.controllers.nodelifecycle.taint_queue import TaintQueue
from pilothouse.controllers.nodelifecycle.zones import ZoneHealth, ZoneState, eviction_rate


class Change(Enum):
    NONE = auto()
    ALL_DOWN = auto()
    """All nodes have become not ready."""
    SOME_UP = auto()
    """A node has become ready after full disruption."""


class Zones:
    """Taint queues of all zones ever seen, and states of the current zones."""

    def __init__(self, config: NodeLifecycleConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self.queues: dict[str, TaintQueue] = {}
        self._states: dict[str, ZoneState] = {}

    def queue(self, zone: str) -> TaintQueue:
        if zone not in self.queues:
            self.queues[zone] = TaintQueue(self._config.node_eviction_rate, self._clock)
        return self.queues[zone]

    def update(self, healths: dict[str, ZoneHealth]) -> tuple[list[str], Change]:
        """Update states and taint rates; return (removed zones, change of the overall state)."""
        gone = [zone for zone in self._states if zone not in healths]
        before = {zone: self._states.get(zone, ZoneState.INITIAL) for zone in healths}
        all_were = all(state is ZoneState.FULL_DISRUPTION for state in before.values())
        all_are = all(health.state is ZoneState.FULL_DISRUPTION for health in healths.values())
        self._states = {zone: health.state for zone, health in healths.items()}
        for zone, health in healths.items():
            self.queue(zone).set_rate(0.0 if all_are else eviction_rate(health, self._config))
        if all_are == all_were:
            return gone, Change.NONE
        return gone, Change.ALL_DOWN if all_are else Change.SOME_UP
