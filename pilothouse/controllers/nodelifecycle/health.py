"""Heartbeats of nodes, and the conditions of unresponsive nodes."""

from __future__ import annotations

from datetime import datetime

from pilothouse.client.clock import Clock
from pilothouse.controllers.config import NodeLifecycleConfig
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, metadata
from pilothouse.machinery.times import format_time, parse_micro_time, parse_time

READY = "Ready"
_KUBELET_CONDITIONS = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(slots=True)
class NodeHealth:
    """Last observed state of a node, with the time on the local monotonic clock: node clocks may be wrong, and wall
    clocks may jump."""

    heard: float
    ready: Json | None
    """The Ready condition."""
    renewed: datetime | None = None
    """renewTime of the lease."""


def observe(known: NodeHealth | None, node: Json, lease: Json | None, clock: Clock) -> NodeHealth:
    """Return the health after observing the node and its lease. Every change is a heartbeat, even to an earlier time:
    the node's clock may have been set back."""
    now = clock.now()
    ready = find_condition(node, READY)
    if known is None:
        health = NodeHealth(now if ready is not None else now - _age(node, clock.wall()), ready)
    elif _beats(known.ready, ready):
        health = NodeHealth(now, ready, known.renewed)
    else:
        health = NodeHealth(known.heard, ready, known.renewed)
    renew_time = ((lease or {}).get("spec") or {}).get("renewTime")
    renewed = parse_micro_time(renew_time) if renew_time else None
    if renewed is not None and health.renewed != renewed:
        health.renewed, health.heard = renewed, now
    return health


def _beats(saved: Json | None, current: Json | None) -> bool:
    if saved is None or current is None:
        return saved is not current
    return saved.get("lastHeartbeatTime") != current.get("lastHeartbeatTime")


def is_silent(health: NodeHealth, config: NodeLifecycleConfig, now: float) -> bool:
    """Return whether the grace period has passed without heartbeat; new nodes have the startup grace period."""
    grace = config.node_startup_grace_period if health.ready is None else config.node_monitor_grace_period
    return now - health.heard > grace


def with_unknown_conditions(node: Json, now: datetime) -> Json:
    """Return the node with conditions set to Unknown."""
    since = format_time(now)
    conditions = list(items(node, "status", "conditions"))
    at = {condition["type"]: index for index, condition in enumerate(conditions)}
    for kind in _KUBELET_CONDITIONS:
        if kind not in at:
            conditions.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "lastHeartbeatTime": metadata(node).get("creationTimestamp"),
                    "lastTransitionTime": since,
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                }
            )
        elif conditions[at[kind]].get("status") != "Unknown":
            conditions[at[kind]] = conditions[at[kind]] | {
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": since,
            }
    return {**node, "status": {**(node.get("status") or {}), "conditions": conditions}}


def _age(node: Json, wall: float) -> float:
    timestamp = metadata(node).get("creationTimestamp")
    created = parse_time(timestamp) if timestamp else None
    return 0.0 if created is None else max(0.0, wall - created.timestamp())
