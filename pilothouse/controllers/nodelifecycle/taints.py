"""Condition taints of nodes, and taint updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.resources import NODES
from pilothouse.kinds.conditions import conditions_of
from pilothouse.kinds.nodes import TaintIdentity, is_unschedulable, taint_identity, taints_of
from pilothouse.machinery.errors import Conflict
from pilothouse.machinery.objects import Json, name_of, resource_version_of
from pilothouse.machinery.times import format_time

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY: TaintIdentity = ("node.kubernetes.io/not-ready", NO_EXECUTE)
UNREACHABLE: TaintIdentity = ("node.kubernetes.io/unreachable", NO_EXECUTE)
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_CONDITION_TAINTS = {
    ("Ready", "False"): "node.kubernetes.io/not-ready",
    ("Ready", "Unknown"): "node.kubernetes.io/unreachable",
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN_KEYS = {_UNSCHEDULABLE, *_CONDITION_TAINTS.values()}
_TRIES = 5


def no_schedule_changes(node: Json) -> tuple[list[TaintIdentity], list[TaintIdentity]]:
    """Return (missing, obsolete) NoSchedule taints according to the node's conditions."""
    wanted = [*_wanted_no_schedule(node)]
    present = [taint_identity(each) for each in taints_of(node)]
    own = [each for each in present if each[1] == NO_SCHEDULE and each[0] in _OWN_KEYS]
    return [each for each in wanted if each not in own], [each for each in own if each not in wanted]


def _wanted_no_schedule(node: Json) -> Iterator[TaintIdentity]:
    for condition in conditions_of(node):
        if key := _CONDITION_TAINTS.get((condition.get("type") or "", condition.get("status") or "")):
            yield key, NO_SCHEDULE
    if is_unschedulable(node):
        yield _UNSCHEDULABLE, NO_SCHEDULE


async def change_taints(
    client: Client, node: Json, add: Sequence[TaintIdentity], remove: Sequence[TaintIdentity], now: float
) -> Json:
    """Return the node with changed taints, in one write; no-op if unchanged. Raises StatusError."""
    nodes = client.for_resource(NODES)
    for _ in range(_TRIES - 1):
        try:
            return await _change_once(client, node, add, remove, now)
        except Conflict:
            node = await nodes.get(name_of(node))
    return await _change_once(client, node, add, remove, now)


async def _change_once(
    client: Client, node: Json, add: Sequence[TaintIdentity], remove: Sequence[TaintIdentity], now: float
) -> Json:
    added_at = format_time(datetime.fromtimestamp(now, UTC))
    old = taints_of(node)
    present = {taint_identity(each) for each in old}
    taints = [each for each in old if taint_identity(each) not in remove]
    taints += [
        {"key": key, "effect": effect, "timeAdded": added_at} for key, effect in add if (key, effect) not in present
    ]
    if taints == old:
        return node
    patch = {"metadata": {"resourceVersion": resource_version_of(node)}, "spec": {"taints": taints or None}}
    return await client.for_resource(NODES).patch(name_of(node), patch, PatchType.STRATEGIC)
