"""Between the two forms of an Event: core/v1, in which it is stored, and events.k8s.io/v1."""

from __future__ import annotations

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types

GROUP = "events.k8s.io"
CORE_EVENT = GroupVersionKind("", "v1", "Event")
EVENT = GroupVersionKind(GROUP, "v1", "Event")

_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK = {new: old for old, new in _RENAMED.items()}

FIELD_LABELS = {
    "reason": "reason",
    "type": "type",
    "metadata.name": "metadata.name",
    "metadata.namespace": "metadata.namespace",
    "reportingController": "reportingComponent",
} | {
    f"regarding.{field}": f"involvedObject.{field}"
    for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
"""The field labels that selectors of events.k8s.io/v1 may name, with those of the stored form."""


def to_core(obj: Json) -> Json:
    return _converted(obj, _BACK, CORE_EVENT)


def from_core(obj: Json) -> Json:
    return _converted(obj, _RENAMED, EVENT)


def _converted(obj: Json, names: dict[str, str], kind: GroupVersionKind) -> Json:
    """Fields that are empty are left out by one version and written by the other: the type knows."""
    found = types.of(kind)
    assert found is not None
    renamed = {names.get(name, name): value for name, value in obj.items()}
    return found.fit(renamed | {"kind": kind.kind, "apiVersion": kind.api_version})
