"""Event objects (core/v1): construction and correlation keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Generic, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.times import format_time

NORMAL = "Normal"
WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class EventSource:
    """Component and host that record an event.

    >>> from pilothouse.client import EventSource
    >>> EventSource("my-controller").to_json()
    {'component': 'my-controller'}
    """

    component: str
    host: str = ""

    def to_json(self) -> Json:
        """Return the `source` field of an Event."""
        return {"component": self.component} | ({"host": self.host} if self.host else {})


def reference_to(obj: Json) -> Json:
    """Return an ObjectReference to the object. Raises ValueError if kind or apiVersion is missing."""
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise ValueError(f"cannot refer to an object without kind and apiVersion: {name_of(obj)!r}")
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
    """Return an Event about `regarding`, an ObjectReference. Events about cluster-scoped objects go to "default"."""
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
    """Return the object's name, truncated to a legal length, with the time as suffix."""
    return f"{about[:236]}.{int(now * 1e9):x}"


def timestamp(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


def spam_key(event: Json) -> tuple[str, ...]:
    """Key of the spam filter: source and object."""
    about, source = event["involvedObject"], event["source"]
    object_key = (about.get(part, "") for part in ("kind", "namespace", "name", "uid", "apiVersion"))
    return (source.get("component", ""), source.get("host", ""), *object_key, event["type"])


def aggregate_key(event: Json) -> tuple[str, ...]:
    """Key of the aggregation: events that differ at most in their message."""
    return (*spam_key(event), event["reason"], event.get("reportingComponent", ""), event.get("reportingInstance", ""))


def event_key(event: Json) -> tuple[str, ...]:
    """Key of repeated events."""
    return (*spam_key(event), event["involvedObject"].get("fieldPath", ""), event["reason"], event["message"])


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRU(Generic[K, V]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def items(self) -> list[tuple[K, V]]:
        return [*self._entries.items()]

    def values(self) -> list[V]:
        return [*self._entries.values()]

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
