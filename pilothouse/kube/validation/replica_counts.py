"""Replica counts in statuses: not negative, and parts at most the total."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.fields import nonnegative
from pilothouse.machinery.field import Errors, NamedString, Path, invalid
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_valid_percent
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field


def validate_counts(status: Json, path: Path, *names: str) -> Errors:
    for name in names:
        yield from nonnegative(status.get(name) or 0, path.child(name))


def validate_parts_of_replicas(
    status: Json, path: Path, names: Iterable[str], *, ready: str = "readyReplicas"
) -> Errors:
    """`ready` is the name of the ready replicas in messages."""
    replicas = status.get("replicas") or 0
    for name in names:
        if (count := status.get(name) or 0) > replicas:
            yield invalid(path.child(name), count, "cannot be greater than status.replicas")
    if (available := status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        yield invalid(path.child("availableReplicas"), available, f"cannot be greater than {ready}")


def validate_collisions(status: Json, old: Json, path: Path) -> Errors:
    """The number of hash collisions only grows, and does not vanish."""
    count, before = status.get("collisionCount"), old.get("collisionCount")
    if before is not None and (count is None or count < before):
        yield invalid(path.child("collisionCount"), count or 0, "cannot be decremented")


def validate_positive_int_or_percent(value: int | str, path: Path) -> Errors:
    if isinstance(value, str):
        for message in is_valid_percent(value):
            yield invalid(path, printable(value), message)
    else:
        yield from validate_nonnegative_field(value, path)


def printable(value: int | str) -> int | str:
    """Return an int-or-string as errors show it."""
    return NamedString(value) if isinstance(value, str) else value


def validate_not_more_than_100_percent(value: int | str, path: Path) -> Errors:
    percent = _percent(value)
    if percent is not None and percent > 100:
        yield invalid(path, value, "must not be greater than 100%")


def int_or_percent_value(value: int | str) -> int:
    """Return the number, or the number in the percentage. Invalid text has the value that Go parses."""
    percent = _percent(value)
    if percent is not None:
        return percent
    return value if isinstance(value, int) else _number(value)


def _percent(value: int | str) -> int | None:
    if isinstance(value, int) or is_valid_percent(value):
        return None
    return _number(value[:-1])


def _number(text: str) -> int:
    """Return 0 for invalid text, and the nearest bound for numbers out of range."""
    digits = text.lstrip("+-")
    if not digits.isascii() or not digits.isdigit() or len(text) - len(digits) > 1:
        return 0
    digits = digits.lstrip("0") or "0"
    size = int(digits) if len(digits) <= 19 else 2**63
    return max(-size, -(2**63)) if text.startswith("-") else min(size, 2**63 - 1)
