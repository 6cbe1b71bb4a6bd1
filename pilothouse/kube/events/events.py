"""Events as a resource: names, selectable fields and columns, over the stored form."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.strategy import GarbageCollection
from pilothouse.apiserver.registry.table import NAME, Cell, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.config import DEFAULT_EVENT_TTL
from pilothouse.kube.events.validation import validate_loosely, validate_strictly, validate_unchanged
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import VersionConversion, served
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.durations import age
from pilothouse.machinery.field import Errors
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.schema import types
from pilothouse.machinery.selectors.fields import Requirement, label_not_supported

_EVENT = "io.k8s.api.core.v1.Event"

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


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
"""Field labels of events.k8s.io/v1, mapped to the stored form."""


def to_core(obj: Json) -> Json:
    return _converted(obj, _BACK, CORE_EVENT)


def from_core(obj: Json) -> Json:
    return _converted(obj, _RENAMED, EVENT)


def _converted(obj: Json, names: dict[str, str], kind: GroupVersionKind) -> Json:
    """Convert field names. The type decides whether empty fields are written."""
    result = types.of(kind)
    assert result is not None
    renamed = {names.get(name, name): value for name, value in obj.items()}
    return result.fit(renamed | {"kind": kind.kind, "apiVersion": kind.api_version})


class CoreEventStrategy(KubeStrategy):
    allow_create_on_update = True
    garbage_collection = GarbageCollection.UNSUPPORTED
    validates_updates_as_creates = True

    def __init__(self, ttl: int = DEFAULT_EVENT_TTL) -> None:
        self._ttl = ttl

    def ttl(self, obj: Json) -> int:
        return self._ttl

    def validate(self, obj: Json) -> Errors:
        return validate_loosely(obj, controller_field="reportingComponent")


class EventStrategy(CoreEventStrategy):
    """events.k8s.io/v1."""

    def validate(self, obj: Json) -> Errors:
        yield from validate_loosely(obj, controller_field="reportingController")
        yield from self.validate_metadata(obj)
        yield from validate_strictly(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from validate_loosely(obj, controller_field="reportingController")
        yield from self.validate_metadata_update(obj, old)
        yield from validate_unchanged(obj, old)


def _fields(event: Json) -> Fields:
    involved = {f"involvedObject.{field}": text(event, "involvedObject", field) for field in _INVOLVED}
    return (
        involved
        | {
            "reason": text(event, "reason"),
            "reportingComponent": text(event, "reportingComponent"),
            "source": text(event, "source", "component") or text(event, "reportingComponent"),
            "type": text(event, "type"),
        }
        | metadata_fields(event)
    )


def _first_seen(event: Json) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"))


def _last_seen(event: Json) -> str:
    if event.get("series") is not None:
        return age(event["series"].get("lastObservedTime"))
    return age(event["lastTimestamp"]) if event.get("lastTimestamp") else _first_seen(event)


def _count(event: Json) -> int:
    """An event without a count happened once."""
    if event.get("series") is not None:
        return event["series"].get("count") or 0
    return event.get("count") or 1


def _object(event: Json) -> str:
    involved = part(event, "involvedObject")
    kind = (involved.get("kind") or "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _source(event: Json) -> str:
    component = text(event, "source", "component") or text(event, "reportingComponent")
    instance = text(event, "source", "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS = Resource(
    names=Names("events", kind="Event", short=["ev"]),
    has_watch_cache=False,
    strategy=CoreEventStrategy(),
    fields=_fields,
    indexed_fields=(
        "involvedObject.uid",
        "involvedObject.name",
        "metadata.name",
        "involvedObject.kind",
        "reason",
        "type",
    ),
    columns=[
        Column("Last Seen", _last_seen, documented=(_EVENT, "lastTimestamp")),
        Column("Type", lambda event: text(event, "type"), documented=(_EVENT, "type")),
        Column("Reason", lambda event: text(event, "reason"), documented=(_EVENT, "reason")),
        Column("Object", _object, documented=(_EVENT, "involvedObject")),
        Column(
            "Subobject",
            lambda event: text(event, "involvedObject", "fieldPath"),
            priority=1,
            documented=("io.k8s.api.core.v1.ObjectReference", "fieldPath"),
        ),
        Column("Source", _source, priority=1, documented=(_EVENT, "source")),
        Column("Message", lambda event: text(event, "message").strip(), documented=(_EVENT, "message")),
        Column("First Seen", _first_seen, priority=1, documented=(_EVENT, "firstTimestamp")),
        Column("Count", _count, priority=1, documented=(_EVENT, "count")),
        Column("Name", NAME.cell, format="name", priority=1, documented=NAME.documented),
    ],
)


def core_event_storages(registries: Registries) -> list[ServedResource]:
    registry = registries.open(EVENTS)
    return [served(registry, registry.with_strategy(CoreEventStrategy(registries.event_ttl)))]


def served_events(registries: Registries) -> list[ServedResource]:
    registry = registries.open(EVENTS)
    view = registry.with_strategy(EventStrategy(registries.event_ttl))
    conversion = VersionConversion(kind=EVENT, to_stored=to_core, from_stored=from_core, default=_no_defaults)
    event = replace(
        served(registry, view, conversion=conversion),
        convert_field=_stored_label,
        columns=[replace(column, cell=_of_stored(column.cell)) for column in EVENTS.columns],
    )
    return [event]


def _no_defaults(_: Json) -> None:
    """Events have no defaults."""


def _stored_label(requirement: Requirement) -> Requirement:
    label = FIELD_LABELS.get(requirement.field)
    if label is None:
        raise ValueError(label_not_supported(requirement.field))
    return replace(requirement, field=label)


def _of_stored(cell: Cell) -> Cell:
    return lambda event: cell(to_core(dict(event)))
