"""Taints and tolerations of devices."""

from __future__ import annotations

from pilothouse.kube.validation.fields import follow, one_of, required_one_of
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json, items, text
from pilothouse.machinery.times import now
from pilothouse.machinery.validation.labels import validate_label_name
from pilothouse.machinery.validation.names import is_valid_label_value

EFFECTS = ("NoExecute", "NoSchedule", "None")
OPERATORS = ("Equal", "Exists")


def default_tolerations(owner: Json) -> None:
    for toleration in items(owner, "tolerations"):
        toleration["operator"] = text(toleration, "operator") or "Equal"


def default_taint(taint: Json) -> None:
    taint["timeAdded"] = taint.get("timeAdded") or now()


def default_taints(device: Json) -> None:
    for taint in items(device, "taints"):
        default_taint(taint)


def validate_tolerations(owner: Json, path: Path) -> Errors:
    for position, toleration in enumerate(items(owner, "tolerations")):
        toleration_path = path.child("tolerations").index(position)
        key, operator, value, effect = (text(toleration, name) for name in ("key", "operator", "value", "effect"))
        if key:
            yield from validate_label_name(key, toleration_path.child("key"))
        if operator == "Exists":
            if value:
                yield invalid(toleration_path.child("value"), value, "must be empty for operator `Exists`")
        elif operator == "Equal":
            yield from follow(is_valid_label_value, value, toleration_path.child("value"))
        else:
            yield from required_one_of(operator, toleration_path.child("operator"), OPERATORS)
        if effect:
            yield from one_of(effect, toleration_path.child("effect"), EFFECTS)


def validate_taint(taint: Json, path: Path) -> Errors:
    yield from validate_label_name(text(taint, "key"), path.child("key"))
    if value := text(taint, "value"):
        yield from follow(is_valid_label_value, value, path.child("value"))
    yield from required_one_of(text(taint, "effect"), path.child("effect"), EFFECTS)
