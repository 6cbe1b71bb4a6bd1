"""Devices from ResourceSlices: the devices of a node's own and reachable slices, and their selection by CEL and
taints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pilothouse.kinds.node_affinity import NodeSelector
from pilothouse.kinds.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.node_info import NodeInfo

_DEAREST = 10_000
"""Cost limit of a selector. Selectors run on the event loop, once per device."""


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
    return [device for resource_slice in _current(slices) for device in _devices(resource_slice["spec"], node)]


def _current(slices: Iterable[Json]) -> Iterator[Json]:
    """Yield the slices of the newest generation of each pool; incomplete pools are skipped."""
    pools: dict[tuple[str, str], list[Json]] = {}
    for resource_slice in slices:
        pools.setdefault((resource_slice["spec"]["driver"], resource_slice["spec"]["pool"]["name"]), []).append(
            resource_slice
        )
    for members in pools.values():
        newest = max(member["spec"]["pool"]["generation"] for member in members)
        current = [member for member in members if member["spec"]["pool"]["generation"] == newest]
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
    """Return a selector for the nodes that reach every device; None if every node does."""
    terms = [device.reached_from for device in devices if device.reached_from is not None]
    merged: Json = {}
    for kind in ("matchExpressions", "matchFields"):
        every = [expression for term in terms for expression in term.get(kind) or ()]
        distinct = [term for position, term in enumerate(every) if term not in every[:position]]
        merged |= {kind: distinct} if distinct else {}
    return {"nodeSelectorTerms": [merged]} if merged else None


class SelectionFailed(PilothouseError):
    """A selector failed to evaluate."""


def is_selected(device: Device, selectors: Iterable[Json]) -> bool:
    """Return whether all selectors match the device. Raises SelectionFailed."""
    for selector in selectors:
        expression = (selector.get("cel") or {}).get("expression") or ""
        outcome = _program(expression).run(_variables(device), limit=_DEAREST)
        if outcome.error is not None:
            raise SelectionFailed(f"CEL expression {expression!r} failed for device {device.name}: {outcome.error}")
        if outcome.value is not True:
            return False
    return True


def is_tolerated(device: Device, tolerations: list[Json]) -> bool:
    return next(untolerated(device.spec.get("taints") or (), tolerations, (NO_SCHEDULE, NO_EXECUTE)), None) is None


@bounded_cache(entries=256, key_bytes=1024)
def _program(expression: str) -> Any:
    from pilothouse.machinery.cel.devices import compile_device_selector
    from pilothouse.machinery.cel.environment import CompilationFailed
    from pilothouse.machinery.cel.program import Program, ProgramFailed

    try:
        return Program(compile_device_selector(expression).program)
    except (CompilationFailed, ProgramFailed) as error:
        raise SelectionFailed(str(error)) from None


def _variables(device: Device) -> dict[str, Any]:
    from pilothouse.machinery.cel.library import quantities

    attributes = _by_domain(device, {name: _cel_value(value) for name, value in _parts(device, "attributes")})
    sizes = {name: quantities.parse(str(value["value"])) for name, value in _parts(device, "capacity")}
    capacity = _by_domain(device, sizes)
    shared = bool(device.spec.get("allowMultipleAllocations"))
    variables = {"driver": device.driver, "attributes": attributes, "capacity": capacity}
    return {"device": {**variables, "allowMultipleAllocations": shared}}


def _parts(device: Device, kind: str) -> Iterable[tuple[str, Json]]:
    return (device.spec.get(kind) or {}).items()


def _cel_value(value: Json) -> Any:
    if "version" in value:
        from pilothouse.machinery.cel.library import semver

        return semver.parse(value["version"])
    return next(iter(value.values()), None)


def _by_domain(device: Device, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Group the values by domain; names without a domain belong to the driver's domain."""
    sorted_out: dict[str, dict[str, Any]] = {device.driver: {}}
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        sorted_out.setdefault(domain if slash else device.driver, {})[rest if slash else name] = value
    return sorted_out
