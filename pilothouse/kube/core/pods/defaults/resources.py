"""Defaults of resource amounts: requests default to limits, and amounts are rounded up to thousandths."""

from __future__ import annotations

from pilothouse.kinds.resources import aggregate_limits, aggregate_requests
from pilothouse.kube.validation.resource_names import is_huge_page, is_overcommit_allowed
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

_MILLI = -3


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
    """Complete pod-level resources from the containers, if the pod has any."""
    resources = spec.get("resources")
    if resources is None:
        return
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits or requests:
        for name, amount in aggregate_limits(spec).items():
            if is_huge_page(name) and name not in requests:
                limits.setdefault(name, str(amount))
        if limits:
            resources["limits"] = limits
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits:
        for name, amount in aggregate_requests(spec).items():
            if is_pod_level(name) and is_overcommit_allowed(name):
                requests.setdefault(name, str(amount))
        for name, text in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, text)
        if requests:
            resources["requests"] = requests


def is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or is_huge_page(name)
