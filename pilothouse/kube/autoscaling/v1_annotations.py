"""The annotations in which autoscaling/v1 carries what it has no fields for. Only that version shows them."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import DecodeError, ObjectType

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"

_ALL = frozenset(
    {
        METRICS,
        CURRENT_METRICS,
        CONDITIONS,
        BEHAVIOR,
        "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
        "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    }
)


def drop_annotations(obj: Json) -> None:
    annotations = metadata(obj).get("annotations")
    if not annotations or _ALL.isdisjoint(annotations):
        return
    kept = {key: value for key, value in annotations.items() if key not in _ALL}
    if kept:
        metadata(obj)["annotations"] = kept
    else:
        del metadata(obj)["annotations"]


def encode(value: Any) -> str:
    """JSON as Go writes it."""
    return escape_html(orjson.dumps(value).decode())


def decode_list(text: str | None, version: str, kind: str) -> list[Json] | None:
    """The objects of a type that an annotation holds; None where it holds something else, which counts as nothing."""
    values = _parse(text)
    if not isinstance(values, list):
        return None
    decoded = [decode_value(value, version, kind) for value in values]
    found = [value for value in decoded if value is not None]
    return found if len(found) == len(decoded) else None


def decode_object(text: str | None) -> Json | None:
    value = _parse(text)
    return value if isinstance(value, dict) else None


def decode_value(value: Any, version: str, kind: str) -> Json | None:
    node = types.definition(f"io.k8s.api.autoscaling.{version}.{kind}")
    assert node is not None, f"autoscaling/{version} has no {kind}"
    try:
        return ObjectType(GroupVersionKind("autoscaling", version, kind), node).decode(value or {}).obj
    except DecodeError:
        return None


def _parse(text: str | None) -> Any:
    try:
        return None if text is None else parse(text.encode()).value
    except JsonError:
        return None
