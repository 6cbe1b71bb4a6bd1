"""Replica counts in statuses: not negative, and parts at most the total."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.validation.fields import nonnegative
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json


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
