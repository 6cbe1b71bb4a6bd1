"""Defaults of resource amounts: requests default to limits, and amounts are rounded up to thousandths."""

from __future__ import annotations

from pilothouse.apiserver.server.features import enabled
from pilothouse.kinds.pods import all_containers
from pilothouse.kinds.resources import aggregate_limits, aggregate_requests
from pilothouse.kube.validation.resource_names import is_huge_page, is_overcommit_allowed, is_pod_level
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

_MILLI = -3
_COMPLETES_LIMITS = "PodLevelResourcesFixDefaulting"


def round_up(amounts: Json | None) -> None:
    """Round each amount up to whole thousandths."""
    for name, text in (amounts or {}).items():
        amount = parse_quantity(text)
        if amount.power < _MILLI:
            amounts[name] = str(amount.round_up(_MILLI))  # type: ignore[index]


def round_up_requirements(resources: Json | None) -> None:
    if resources:
        round_up(resources.get("limits"))
        round_up(resources.get("requests"))


def request_what_is_limited(container: Json) -> None:
    resources = container.get("resources")
    if not resources or not resources.get("limits"):
        return
    requests = resources.setdefault("requests", {})
    for name, amount in resources["limits"].items():
        requests.setdefault(name, amount)


def default_pod_level_resources(spec: Json) -> None:
    """Complete pod-level resources from the containers, if the pod has any.

    Versions with PodLevelResourcesFixDefaulting do so after admission, and complete the limits, too.
    """
    resources = spec.get("resources")
    if resources is None:
        return
    completes = enabled(_COMPLETES_LIMITS)
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, amount in aggregate_limits(spec).items():
            if is_huge_page(name) and name not in requests:
                limits.setdefault(name, str(amount))
        if limits:
            resources["limits"] = limits
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or (completes and requests):
        for name, amount in aggregate_requests(spec).items():
            if is_pod_level(name) and is_overcommit_allowed(name):
                requests.setdefault(name, str(amount))
        for name, text in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, text)
        if requests:
            resources["requests"] = requests
    if completes:
        _complete_limits(spec, resources)


def defaults_pod_level_resources_late() -> bool:
    """Report whether pod-level resources are completed after admission, when webhooks have added their containers."""
    return enabled(_COMPLETES_LIMITS)


def _complete_limits(spec: Json, resources: Json) -> None:
    """Limit each requested resource that all containers limit: to the sum of the limits, or to the larger request."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    containers = list(all_containers(spec))
    totals = aggregate_limits(spec)
    for name, text in requests.items():
        if name in limits or not is_pod_level(name) or name not in totals:
            continue
        if all(name in ((container.get("resources") or {}).get("limits") or {}) for container in containers):
            limits[name] = str(max(totals[name], parse_quantity(text)))
    if limits:
        resources["limits"] = limits
