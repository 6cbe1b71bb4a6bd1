"""Events as a resource: names, selectable fields and columns, over the stored form."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kube.events.strategy import CoreEventStrategy
from pilothouse.machinery.durations import age
from pilothouse.machinery.objects import Json, part, text

_EVENT = "io.k8s.api.core.v1.Event"
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


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
