"""The states of all zones. When every node of every zone is down, it is taken for this side's fault."""

from __future__ import annotations

from enum import Enum, auto

from pilothouse.client.clock import Clock
from pilothouse.controllers.nodelifecycle.config import NodeLifecycleConfig
from pilothouse.controllers.nodelifecycle.taint_queue import TaintQueue
from pilothouse.controllers.nodelifecycle.zones import ZoneHealth, ZoneState, eviction_rate


class Change(Enum):
    NONE = auto()
    ALL_DOWN = auto()
    """No node is ready, and one was before."""
    SOME_UP = auto()
    """A node is ready, and none was before."""


class Zones:
    """The queue of each zone that ever had a node, and the state of each that has one now."""

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
        """Set the rates of all queues. Return the zones that have no nodes any more, and what happened to all."""
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
