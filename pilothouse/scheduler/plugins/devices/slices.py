"""Devices from ResourceSlices: for each node the devices of its own slices and of reachable slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.kinds.node_affinity import NodeSelector
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    driver: str
    pool: str
    name: str
    spec: Json
    """Attributes, capacity and taints."""
    reached_from: Json | None
    """Node selector of the device; None = usable on all nodes."""

    @property
    def id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.name


def devices_for(node: NodeInfo, slices: Iterable[Json]) -> list[Device]:
    """Return the devices that a pod on the node could use."""
    return [device for each in _current(slices) for device in _devices(each["spec"], node)]


def _current(slices: Iterable[Json]) -> Iterator[Json]:
    """Yield the slices of the newest generation of each pool; incomplete pools are skipped."""
    pools: dict[tuple[str, str], list[Json]] = {}
    for each in slices:
        pools.setdefault((each["spec"]["driver"], each["spec"]["pool"]["name"]), []).append(each)
    for members in pools.values():
        newest = max(each["spec"]["pool"]["generation"] for each in members)
        current = [each for each in members if each["spec"]["pool"]["generation"] == newest]
        if len(current) == current[0]["spec"]["pool"]["resourceSliceCount"]:
            yield from current


def _devices(spec: Json, node: NodeInfo) -> Iterator[Device]:
    for device in spec.get("devices") or ():
        where = device if spec.get("perDeviceNodeSelection") else spec
        if device.get("consumesCounters") or device.get("allowMultipleAllocations"):
            continue
        if _is_reached(where, node):
            yield Device(spec["driver"], spec["pool"]["name"], device["name"], device, _selector(where))


def _is_reached(where: Json, node: NodeInfo) -> bool:
    if where.get("nodeName"):
        return bool(where["nodeName"] == node.name)
    if where.get("allNodes"):
        return True
    return bool(where.get("nodeSelector")) and NodeSelector.read(where["nodeSelector"]).matches(node.node or {})


def _selector(where: Json) -> Json | None:
    if name := where.get("nodeName"):
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    terms = (where.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return dict(terms[0]) if terms else None


def common_selector(devices: Iterable[Device]) -> Json | None:
    """Return a node selector for nodes that reach all devices; None = all nodes."""
    terms = [device.reached_from for device in devices if device.reached_from is not None]
    merged: Json = {}
    for kind in ("matchExpressions", "matchFields"):
        every = [expression for term in terms for expression in term.get(kind) or ()]
        distinct = [each for position, each in enumerate(every) if each not in every[:position]]
        merged |= {kind: distinct} if distinct else {}
    return {"nodeSelectorTerms": [merged]} if merged else None
