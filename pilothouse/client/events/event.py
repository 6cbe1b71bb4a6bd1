"""Event objects (core/v1): how they are made and what makes two of them alike."""

from __future__ import annotations

from datetime import UTC, datetime

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.times import format_time

NORMAL = "Normal"
WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventSource:
    """Who records an event: the component, and the machine that it runs on.

    >>> from pilothouse.client import EventSource
    >>> EventSource("my-controller").to_json()
    {'component': 'my-controller'}
    """

    component: str
    host: str = ""

    def to_json(self) -> Json:
        """Return it as the `source` of an event."""
        return {"component": self.component} | ({"host": self.host} if self.host else {})


def reference_to(obj: Json) -> Json:
    """An ObjectReference. Raises ValueError on an object that does not say what it is."""
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise ValueError(f"an object without kind and apiVersion can not be referred to: {name_of(obj)!r}")
    parts = {
        "kind": obj["kind"],
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "uid": uid_of(obj),
        "apiVersion": obj["apiVersion"],
        "resourceVersion": resource_version_of(obj),
    }
    return {name: value for name, value in parts.items() if value}


def new_event(regarding: Json, source: EventSource, *, type_: str, reason: str, message: str, now: float) -> Json:
    """`regarding` is an ObjectReference. An event about something without a namespace goes to "default"."""
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "name": event_name(regarding["name"], now),
            "namespace": regarding.get("namespace") or "default",
        },
        "involvedObject": regarding,
        "reason": reason,
        "message": message,
        "source": source.to_json(),
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
        "type": type_,
        "reportingComponent": source.component,
        "reportingInstance": source.host,
    }


def event_name(about: str, now: float) -> str:
    """The object's name and the time; cut so that it stays a legal name."""
    return f"{about[:236]}.{int(now * 1e9):x}"


def timestamp(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def spam_key(event: Json) -> tuple[str, ...]:
    """Source and object: one bucket of events for each."""
    about, source = event["involvedObject"], event["source"]
    object_key = (about.get(part, "") for part in ("kind", "namespace", "name", "uid", "apiVersion"))
    return (source.get("component", ""), source.get("host", ""), *object_key, event["type"])


def aggregate_key(event: Json) -> tuple[str, ...]:
    """Events with the same key differ in their message at most."""
    return (*spam_key(event), event["reason"], event.get("reportingComponent", ""), event.get("reportingInstance", ""))


def event_key(event: Json) -> tuple[str, ...]:
    """Events with the same key are the same event, seen again."""
    return (*spam_key(event), event["involvedObject"].get("fieldPath", ""), event["reason"], event["message"])
