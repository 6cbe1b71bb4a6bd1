"""Zones of nodes: zone health determines the eviction rate.

If every node of every zone is down, the fault is assumed on the controller's side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto

from pilothouse.client.clock import Clock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.controllers.config import NodeLifecycleConfig
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of

_BURST = 1


class ZoneState(Enum):
    INITIAL = "Initial"
    NORMAL = "Normal"
    FULL_DISRUPTION = "FullDisruption"
    PARTIAL_DISRUPTION = "PartialDisruption"


@dataclass(frozen=True, slots=True)
class ZoneHealth:
    size: int
    unhealthy: int
    state: ZoneState


def zone_key(node: Json) -> str:
    """Return the key of the node's zone; empty without region and zone."""
    labels = labels_of(node)
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def zone_health(ready: Iterable[bool], config: NodeLifecycleConfig) -> ZoneHealth:
    """Return the health of a zone from the readiness of its nodes."""
    nodes = [*ready]
    down = nodes.count(False)
    if down and down == len(nodes):
        state = ZoneState.FULL_DISRUPTION
    elif down > 2 and down / len(nodes) >= config.unhealthy_zone_threshold:
        state = ZoneState.PARTIAL_DISRUPTION
    else:
        state = ZoneState.NORMAL
    return ZoneHealth(len(nodes), down, state)


def eviction_rate(health: ZoneHealth, config: NodeLifecycleConfig) -> float:
    """Return the allowed evictions in nodes per second."""
    if health.state is not ZoneState.PARTIAL_DISRUPTION:
        return config.node_eviction_rate
    return config.secondary_node_eviction_rate if health.size > config.large_cluster_size_threshold else 0.0


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


class TaintQueue:
    """Queue of nodes to taint. Each node is handed out once until removed, so that a node is not tainted twice."""

    _known: set[str]  # nodes added and not removed
    _waiting: dict[str, None]  # known nodes not handed out yet, oldest first

    def __init__(self, rate: float, clock: Clock) -> None:
        self._clock = clock
        self._rate = rate
        self._bucket: TokenBucket | None = _bucket(rate, clock)
        self._known = set()
        self._waiting = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, node: str) -> bool:
        """Add the node; return whether it is new."""
        if node in self._known:
            return False
        self._known.add(node)
        self._waiting[node] = None
        return True

    def remove(self, node: str) -> bool:
        """Remove the node; return whether it was known."""
        was_here = node in self._known
        self._known.discard(node)
        self._waiting.pop(node, None)
        return was_here

    async def work(self, taint: Callable[[str], Awaitable[bool]]) -> None:
        """Call `taint` for as many nodes as the rate allows; False = retry the node later."""
        for node in [*self._waiting]:
            if self._bucket is None or not self._bucket.try_accept():
                return
            if await taint(node):
                self._waiting.pop(node, None)

    def set_rate(self, rate: float) -> None:
        """Set the rate; 0 = pause. An exhausted limiter stays exhausted."""
        if rate == self._rate:
            return
        bucket = _bucket(rate, self._clock)
        if bucket is not None and not (self._bucket is not None and self._bucket.try_accept()):
            bucket.try_accept()
        self._rate, self._bucket = rate, bucket


def _bucket(rate: float, clock: Clock) -> TokenBucket | None:
    return TokenBucket(rate, _BURST, clock) if rate > 0 else None
