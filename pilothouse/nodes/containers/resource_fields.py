"""Resource fields of the downward API: requests and limits of a container, in units of a divisor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.quantity import parse_quantity

_LIMITED_BY_NODE: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources whose missing or zero limit is the allocatable amount of the node."""


def resource_text(spec: Json, selector: Json, allocatable: Mapping[str, str]) -> str:
    """Return the value of a resourceFieldRef of the container, rounded up; empty for unknown resources."""
    kind, _, resource = (selector.get("resource") or "").partition(".")
    if kind not in ("requests", "limits") or not resource:
        return ""
    amount = parse_quantity(str(part(spec, "resources", kind).get(resource) or "0"))
    if kind == "limits" and not amount and resource in _LIMITED_BY_NODE:
        amount = parse_quantity(str(allocatable.get(resource) or "0"))
    divisor = parse_quantity(str(selector.get("divisor") or "0"))
    if not divisor:
        divisor = parse_quantity("1")
    if resource == "cpu":
        return _rounded_up(amount.milli_value(), divisor.milli_value())
    return _rounded_up(amount.value(), divisor.value())


def _rounded_up(amount: int, divisor: int) -> str:
    return str(-(-amount // divisor)) if divisor else "0"
