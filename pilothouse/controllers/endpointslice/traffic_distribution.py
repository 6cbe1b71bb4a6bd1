"""trafficDistribution hints: each ready endpoint serves its own zone or node."""

from __future__ import annotations

from pilothouse.controllers.endpointslice.endpoint import is_endpoint_ready
from pilothouse.controllers.endpointslice.plan import Plan
from pilothouse.machinery.objects import Json, annotations_of, text

PREFER_SAME_NODE = "PreferSameNode"
_CLOSE = frozenset({"PreferClose", "PreferSameZone", PREFER_SAME_NODE})
_TOPOLOGY_ANNOTATIONS = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")
"""Topology annotations, deprecated one first; it takes precedence."""


def wants_topology_hints(service: Json) -> bool:
    annotations = annotations_of(service)
    return next((annotations[name] for name in _TOPOLOGY_ANNOTATIONS if name in annotations), "") in ("Auto", "auto")


def traffic_distribution(service: Json) -> str:
    """Return the service's traffic distribution; empty if unknown, or if an annotation requests topology hints, which
    take precedence."""
    asked = text(service, "spec", "trafficDistribution")
    return asked if asked in _CLOSE and not wants_topology_hints(service) else ""


def put_close_hints(plan: Plan, unchanged: list[Json], distribution: str) -> None:
    """Set hints on all slices; unchanged slices are updated only if a hint is wrong."""
    for each in (*plan.create, *plan.update):
        each["endpoints"] = [_hinted(endpoint, distribution) for endpoint in each["endpoints"]]
    for each in unchanged:
        hinted = [_hinted(endpoint, distribution) for endpoint in each.get("endpoints") or ()]
        if hinted != (each.get("endpoints") or []):
            plan.update.append({**each, "endpoints": hinted})


def remove_hints(plan: Plan, unchanged: list[Json]) -> None:
    for each in (*plan.create, *plan.update):
        each["endpoints"] = [_without_hints(endpoint) for endpoint in each["endpoints"]]
    for each in unchanged:
        if any(endpoint.get("hints") is not None for endpoint in each.get("endpoints") or ()):
            plan.update.append({**each, "endpoints": [_without_hints(endpoint) for endpoint in each["endpoints"]]})


def _hinted(endpoint: Json, distribution: str) -> Json:
    if not is_endpoint_ready(endpoint):
        return endpoint
    zone, node = endpoint.get("zone"), endpoint.get("nodeName") if distribution == PREFER_SAME_NODE else None
    hints = ({"forZones": [{"name": zone}]} if zone else {}) | ({"forNodes": [{"name": node}]} if node else {})
    return _without_hints(endpoint) | ({"hints": hints} if hints else {})


def _without_hints(endpoint: Json) -> Json:
    return {name: value for name, value in endpoint.items() if name != "hints"}
