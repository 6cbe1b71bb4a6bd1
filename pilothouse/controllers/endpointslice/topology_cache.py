"""Hints of endpoints: by topology, in proportion to the node CPU of zones, or by trafficDistribution, the own zone or
node.

Topology hints are computed per address type and remembered, to detect services that need new hints after node changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.controllers.endpointslice import zone_allocation
from pilothouse.controllers.endpointslice.endpoint import is_endpoint_ready
from pilothouse.controllers.endpointslice.plan import Plan
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, items, text

DISABLED, ENABLED = "TopologyAwareHintsDisabled", "TopologyAwareHintsEnabled"
PREFER_SAME_NODE = "PreferSameNode"
_CLOSE = frozenset({"PreferClose", "PreferSameZone", PREFER_SAME_NODE})
_TOPOLOGY_ANNOTATIONS = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Topology annotations, deprecated one first; it takes precedence."""


@dataclass(frozen=True, slots=True)
class HintEvent:
    type: str
    reason: str
    message: str


class TopologyCache:
    _hints: dict[str, dict[str, zone_allocation.Zones]]  # by service key and address type

    def __init__(self) -> None:
        self.zones = zone_allocation.ZoneShares()
        self._hints = {}

    def overloaded_services(self) -> list[str]:
        ratios = self.zones.ratios or {}
        return [
            service
            for service, by_type in self._hints.items()
            if any(zone_allocation.is_overloaded(hints, ratios) for hints in by_type.values())
        ]

    def has_hints(self, service: str) -> bool:
        return service in self._hints

    def forget(self, service: str, address_type: str) -> None:
        by_type = self._hints.get(service, {})
        by_type.pop(address_type, None)
        if not by_type:
            self._hints.pop(service, None)

    def put_hints(self, service: str, address_type: str, plan: Plan, unchanged: list[Json]) -> Iterator[HintEvent]:
        """Set or remove hints on the slices of the plan; yield events with the reason."""
        had = self.has_hints(service)
        try:
            hints = self._put(plan, unchanged)
        except zone_allocation.NoAllocation as error:
            self.forget(service, address_type)
            remove_hints(plan, plan.unchanged(unchanged))
            yield HintEvent(WARNING, DISABLED, with_address_type(str(error), address_type))
            return
        self._hints.setdefault(service, {})[address_type] = hints
        if not had:
            yield HintEvent(NORMAL, ENABLED, with_address_type("Topology Aware Hints has been enabled", address_type))

    def _put(self, plan: Plan, unchanged: list[Json]) -> zone_allocation.Zones:
        ratios = self.zones.ratios
        if ratios is None:
            raise zone_allocation.NoAllocation(
                "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
            )
        slices = [*plan.create, *plan.update, *unchanged]
        allocated = zone_allocation.allocations(
            ratios, sum(1 for endpoint_slice in slices for _ in _ready(endpoint_slice))
        )
        hints = zone_allocation.Zones()
        for current in unchanged:
            kept = _kept_hints(current, hints, allocated)
            if kept is None:
                plan.update.append({**current, "endpoints": [dict(endpoint) for endpoint in current["endpoints"]]})
            else:
                _add(hints, kept)
        _add(hints, _hint_own_zones([*plan.create, *plan.update]))
        if not hints:
            raise zone_allocation.NoAllocation("No hints allocated for zones")
        _add(hints, _move_hints([*plan.create, *plan.update], allocated, hints))
        return hints


def with_address_type(message: str, address_type: str) -> str:
    return f"{message}, addressType: {address_type}"


def _ready(endpoint_slice: Json) -> Iterator[Json]:
    return (endpoint for endpoint in endpoint_slice.get("endpoints") or () if is_endpoint_ready(endpoint))


def _kept_hints(
    endpoint_slice: Json, hints: zone_allocation.Zones, allocated: dict[str, zone_allocation.ZoneAllocation]
) -> zone_allocation.Zones | None:
    """Return the slice's hints if they can stay; None if they must change."""
    kept = zone_allocation.Zones()
    for endpoint in _ready(endpoint_slice):
        zones = [zone["name"] for zone in items(endpoint, "hints", "forZones")]
        if not zones:
            return None
        _add(kept, dict.fromkeys(zones, 1))
    fits = all(
        zone in allocated and number + hints.get(zone, 0) <= allocated[zone].maximum for zone, number in kept.items()
    )
    return kept if fits else None


def _hint_own_zones(slices: list[Json]) -> zone_allocation.Zones:
    """Hint each endpoint to its own zone; return the counts. Raises NoAllocation for an endpoint without a zone."""
    hints = zone_allocation.Zones()
    for endpoint_slice in slices:
        endpoint_slice["endpoints"] = [dict(endpoint) for endpoint in endpoint_slice["endpoints"]]
        for endpoint in endpoint_slice["endpoints"]:
            endpoint.pop("hints", None)
        for endpoint in _ready(endpoint_slice):
            if not (zone := endpoint.get("zone")):
                raise zone_allocation.NoAllocation("One or more endpoints do not have a zone specified")
            endpoint["hints"] = {"forZones": [{"name": zone}]}
            _add(hints, {zone: 1})
    return hints


def _move_hints(
    slices: list[Json], allocated: dict[str, zone_allocation.ZoneAllocation], hints: zone_allocation.Zones
) -> zone_allocation.Zones:
    """Move hints from zones with too many endpoints to zones with too few; return the change per zone."""
    due, moved = zone_allocation.redistribution(allocated, hints), zone_allocation.Zones()
    for endpoint in (endpoint for endpoint_slice in slices for endpoint in _ready(endpoint_slice)):
        zone, taker = endpoint["zone"], next(iter(due.receiving), None)
        if taker is None or zone not in due.giving:
            continue
        endpoint["hints"] = {"forZones": [{"name": taker}]}
        _take_one(due.giving, zone)
        _take_one(due.receiving, taker)
        _add(moved, {zone: -1})
        _add(moved, {taker: 1})
    return moved


def _take_one(zones: zone_allocation.Zones, zone: str) -> None:
    zones[zone] -= 1
    if not zones[zone]:
        del zones[zone]


def _add(zones: zone_allocation.Zones, more: zone_allocation.Zones) -> None:
    for zone, number in more.items():
        zones[zone] = zones.get(zone, 0) + number


def wants_topology_hints(service: Json) -> bool:
    annotations = annotations_of(service)
    return next((annotations[name] for name in _TOPOLOGY_ANNOTATIONS if name in annotations), "") in ("Auto", "auto")


def traffic_distribution(service: Json) -> str:
    """Return the service's traffic distribution; empty if unknown, or if an annotation requests topology hints, which
    take precedence."""
    distribution = text(service, "spec", "trafficDistribution")
    return distribution if distribution in _CLOSE and not wants_topology_hints(service) else ""


def put_close_hints(plan: Plan, unchanged: list[Json], distribution: str) -> None:
    """Set hints on all slices; unchanged slices are updated only if a hint is wrong."""
    for endpoint_slice in (*plan.create, *plan.update):
        endpoint_slice["endpoints"] = [_hinted(endpoint, distribution) for endpoint in endpoint_slice["endpoints"]]
    for endpoint_slice in unchanged:
        hinted = [_hinted(endpoint, distribution) for endpoint in endpoint_slice.get("endpoints") or ()]
        if hinted != (endpoint_slice.get("endpoints") or []):
            plan.update.append({**endpoint_slice, "endpoints": hinted})


def remove_hints(plan: Plan, unchanged: list[Json]) -> None:
    for endpoint_slice in (*plan.create, *plan.update):
        endpoint_slice["endpoints"] = [_without_hints(endpoint) for endpoint in endpoint_slice["endpoints"]]
    for endpoint_slice in unchanged:
        if any(endpoint.get("hints") is not None for endpoint in endpoint_slice.get("endpoints") or ()):
            plan.update.append(
                {**endpoint_slice, "endpoints": [_without_hints(endpoint) for endpoint in endpoint_slice["endpoints"]]}
            )


def _hinted(endpoint: Json, distribution: str) -> Json:
    if not is_endpoint_ready(endpoint):
        return endpoint
    zone, node = endpoint.get("zone"), endpoint.get("nodeName") if distribution == PREFER_SAME_NODE else None
    hints = ({"forZones": [{"name": zone}]} if zone else {}) | ({"forNodes": [{"name": node}]} if node else {})
    return _without_hints(endpoint) | ({"hints": hints} if hints else {})


def _without_hints(endpoint: Json) -> Json:
    return {name: value for name, value in endpoint.items() if name != "hints"}
