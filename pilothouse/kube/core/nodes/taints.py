"""Taints of nodes, and the annotations that older clients wrote instead of fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilothouse.kube.validation.fields import required_one_of
from pilothouse.kube.validation.tolerations import TAINT_EFFECTS
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.field import Errors, ErrorType, FieldError, Path, invalid, required
from pilothouse.machinery.govalue import json_type
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_name
from pilothouse.machinery.validation.names import is_valid_label_value

TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"


class _NotRead(Exception):
    """An annotation is not the JSON that it should be; the text is Go's."""


def validate_taints(taints: Sequence[Json], path: Path) -> Errors:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        at, key, effect = path.index(position), taint.get("key") or "", taint.get("effect") or ""
        yield from validate_label_name(key, at.child("key"))
        if messages := is_valid_label_value(taint.get("value") or ""):
            yield invalid(at.child("value"), taint["value"], ";".join(messages))
        yield from required_one_of(effect, at.child("effect"), TAINT_EFFECTS)
        if (key, effect) in seen:
            why = "taints must be unique by key and effect pair"
            yield FieldError(ErrorType.DUPLICATE, str(at), _shown(taint), why)
        seen.add((key, effect))


def _shown(taint: Json) -> Json:
    """As upstream prints a taint: in the form that it has inside the server."""
    return {
        "Key": taint.get("key") or "",
        "Value": taint.get("value") or "",
        "Effect": taint.get("effect") or "",
        "TimeAdded": taint.get("timeAdded"),
    }


def validate_annotations(annotations: dict[str, str], path: Path) -> Errors:
    try:
        taints = _parse(annotations.get(TAINTS_ANNOTATION), list, "[]core.Taint")
        yield from validate_taints(taints or (), path.child(TAINTS_ANNOTATION))
    except _NotRead as problem:
        yield invalid(path, TAINTS_ANNOTATION, str(problem))
    try:
        avoided = _parse(annotations.get(AVOID_PODS_ANNOTATION), dict, "v1.AvoidPods")
        yield from _validate_avoided(avoided or {}, path.child(AVOID_PODS_ANNOTATION))
    except _NotRead as problem:
        yield invalid(path.child("AvoidPods"), AVOID_PODS_ANNOTATION, str(problem))


def _validate_avoided(avoided: Json, path: Path) -> Errors:
    for position, entry in enumerate(avoided.get("preferAvoidPods") or ()):
        at = path.index(position).child("PodSignature")
        controller = (entry.get("podSignature") or {}).get("podController")
        if controller is None:
            yield required(at)
        elif not controller.get("controller"):
            yield invalid(at.child("PodController", "Controller"), False, "must point to a controller")


def _parse(text: str | None, wanted: type, shown: str) -> Any:
    """The value of an annotation. Raises _NotRead."""
    if not text:
        return None
    try:
        value = parse(text.encode()).value
    except JsonError as error:
        raise _NotRead(str(error)) from None
    if value is not None and not isinstance(value, wanted):
        raise _NotRead(f"json: cannot unmarshal {json_type(value)} into Go value of type {shown}")
    return value
