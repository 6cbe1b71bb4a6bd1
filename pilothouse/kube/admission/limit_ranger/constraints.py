"""The constraints of a limit range on one set of requests and limits; each tells what it has against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity

_MAX_MILLI_VALUE = (2**63 - 1) // 1000


@dataclass(frozen=True, slots=True)
class Asked:
    requests: ResourceList
    limits: ResourceList


def complaints(limit: Json, asked: Asked) -> Iterator[str]:
    """Yield what is outside the limit, in upstream's order: minima, maxima, ratios."""
    kind = limit.get("type") or ""
    rules: tuple[tuple[str, Callable[[str, str, Quantity, Asked], str]], ...] = (
        ("min", _below_minimum),
        ("max", _above_maximum),
        ("maxLimitRequestRatio", _above_ratio),
    )
    for field, rule in rules:
        for name, amount in sorted(part(limit, field).items()):
            if complaint := rule(kind, name, parse_quantity(amount), asked):
                yield complaint


def claim_complaints(limit: Json, asked: Asked) -> Iterator[str]:
    """Yield what is outside the limit for a claim, which has requests only."""
    kind = limit.get("type") or ""
    for name, amount in sorted(part(limit, "min").items()):
        if complaint := _below_minimum(kind, name, parse_quantity(amount), asked):
            yield complaint
    for name, text in sorted(part(limit, "max").items()):
        most, request = parse_quantity(text), asked.requests.get(name)
        what = f"maximum {name} usage per {kind} is {most}"
        if request is None:
            yield f"{what}.  No request is specified"
        elif request > most:
            yield f"{what}, but request is {request}"


def _below_minimum(kind: str, name: str, least: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name), asked.limits.get(name)
    what = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        return f"{what}.  No request is specified"
    if request < least:
        return f"{what}, but request is {request}"
    return f"{what}, but limit is {limit}" if limit is not None and limit < least else ""


def _above_maximum(kind: str, name: str, most: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name), asked.limits.get(name)
    what = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        return f"{what}.  No limit is specified"
    if limit > most:
        return f"{what}, but limit is {limit}"
    return f"{what}, but request is {request}" if request is not None and request > most else ""


def _above_ratio(kind: str, name: str, most: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name, ZERO), asked.limits.get(name, ZERO)
    what = f"{name} max limit to request ratio per {kind} is {most}"
    if not request:
        return f"{what}, but no request is specified or request is 0"
    if not limit:
        return f"{what}, but no limit is specified or limit is 0"
    exact = all(each.value() <= _MAX_MILLI_VALUE for each in (request, limit, most))
    ratio = limit.milli_value() / request.milli_value() if exact else limit.value() / request.value()
    return f"{what}, but provided ratio is {ratio:f}" if ratio > float(most) else ""
