"""Tolerations: which taints of a node a pod tolerates.

    first_untolerated(taints, tolerations, PREVENT_SCHEDULING)   → the taint that keeps the pod away, or None

The operators `Lt` and `Gt` compare integers. They need the feature gate TaintTolerationComparisonOperators, off by
default in v1.36 (`comparisons=False`): without the gate, such a toleration tolerates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.objects import Json

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

PREVENT_SCHEDULING = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""Effects that exclude a node; PreferNoSchedule only lowers its score."""

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def tolerates(toleration: Json, taint: Json, *, comparisons: bool = False) -> bool:
    """Whether the toleration tolerates the taint. An empty effect or key matches every effect or key.

    >>> tolerates({"operator": "Exists"}, {"key": "gpu", "value": "a", "effect": "NoSchedule"})
    True
    >>> tolerates({"key": "gpu", "value": "b"}, {"key": "gpu", "value": "a", "effect": "NoSchedule"})
    False
    """
    if (effect := toleration.get("effect")) and effect != taint.get("effect"):
        return False
    if (key := toleration.get("key")) and key != taint.get("key"):
        return False
    operator, value = toleration.get("operator") or "Equal", toleration.get("value") or ""
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(value == (taint.get("value") or ""))
    return comparisons and _compares(operator, value, taint.get("value") or "")


def any_tolerates(tolerations: Iterable[Json], taint: Json, *, comparisons: bool = False) -> bool:
    return any(tolerates(toleration, taint, comparisons=comparisons) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Json],
    tolerations: Sequence[Json],
    effects: Collection[str] = PREVENT_SCHEDULING,
    *,
    comparisons: bool = False,
) -> Json | None:
    """Return the first taint with one of the effects that no toleration tolerates; None if all are tolerated."""
    return next(untolerated(taints, tolerations, effects, comparisons=comparisons), None)


def untolerated(
    taints: Iterable[Json],
    tolerations: Sequence[Json],
    effects: Collection[str] = PREVENT_SCHEDULING,
    *,
    comparisons: bool = False,
) -> Iterator[Json]:
    """Yield the taints with one of the effects that no toleration tolerates."""
    for taint in taints:
        if taint.get("effect") in effects and not any_tolerates(tolerations, taint, comparisons=comparisons):
            yield taint


def matching_tolerations(
    taints: Iterable[Json], tolerations: Sequence[Json], *, comparisons: bool = False
) -> list[Json] | None:
    """Return the first matching toleration of each taint; None if a taint is not tolerated."""
    matching = []
    for taint in taints:
        first = next(
            (toleration for toleration in tolerations if tolerates(toleration, taint, comparisons=comparisons)), None
        )
        if first is None:
            return None
        matching.append(first)
    return matching


def with_toleration(tolerations: Sequence[Json], added: Json) -> list[Json]:
    """Return the tolerations with `added`; it replaces a toleration with the same key, effect, operator and value."""
    identity = _identity(added)
    if not any(_identity(toleration) == identity for toleration in tolerations):
        return [*tolerations, added]
    return [added if _identity(toleration) == identity else toleration for toleration in tolerations]


def same_taint(one: Json, other: Json) -> bool:
    """Whether both taints have the same key and effect: the identity of a taint."""
    return bool(one.get("key") == other.get("key") and one.get("effect") == other.get("effect"))


def taint_text(taint: Json) -> str:
    """Return the taint as messages show it: key=value:effect.

    >>> taint_text({"key": "gpu", "value": "a", "effect": "NoSchedule"}), taint_text({"key": "gpu"})
    ('gpu=a:NoSchedule', 'gpu')
    """
    value, effect = taint.get("value") or "", taint.get("effect") or ""
    text = f"{taint.get('key') or ''}={value}" if value else str(taint.get("key") or "")
    return f"{text}:{effect}" if value or effect else text


def _identity(toleration: Json) -> tuple[str, ...]:
    return tuple(toleration.get(part) or "" for part in ("key", "effect", "operator", "value"))


def _compares(operator: str, bound: str, value: str) -> bool:
    """Compare the taint's value with the toleration's bound. Non-integers never match."""
    limit, number = _integer(bound), _integer(value)
    if limit is None or number is None:
        return False
    return (operator == "Lt" and number < limit) or (operator == "Gt" and number > limit)


def _integer(text: str) -> int | None:
    try:
        return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None
    except ValueError:
        return None
