"""Validation of events: lenient for core/v1, strict for events.k8s.io/v1."""

from __future__ import annotations

from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.validation.fields import dns_subdomain, qualified_name
from pilothouse.machinery.field import Errors, invalid, required, root
from pilothouse.machinery.objects import Json, namespace_of, part, text
from pilothouse.machinery.validation.immutable import validate_immutable_field

_MAX_SHORT = 128
_MAX_MESSAGE = 1024
_NEEDS_UNSET = "needs to be unset"
_WRONG_NAMESPACE = "does not match event.namespace"


def validate_loosely(event: Json, *, controller_field: str) -> Errors:
    """Validate any event. `controller_field` is the version's name of the reporting controller."""
    namespace, involved = namespace_of(event), text(event, "involvedObject", "namespace")
    if event.get("eventTime") is None:
        if involved != namespace and not (involved == "" and namespace == "default"):
            yield invalid(root("involvedObject", "namespace"), involved, _WRONG_NAMESPACE)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            yield invalid(root("involvedObject", "namespace"), involved, _WRONG_NAMESPACE)
        controller, instance = text(event, "reportingComponent"), text(event, "reportingInstance")
        if not controller:
            yield required(root(controller_field))
        yield from qualified_name(controller, root(controller_field))
        if not instance:
            yield required(root("reportingInstance"))
        yield from _validate_length(instance, "reportingInstance", _MAX_SHORT)
        for field in ("action", "reason"):
            if not event.get(field):
                yield required(root(field))
            yield from _validate_length(text(event, field), field, _MAX_SHORT)
        yield from _validate_length(text(event, "message"), "message", _MAX_MESSAGE)
    yield from dns_subdomain(namespace, root("namespace"))


def _validate_length(value: str, field: str, limit: int) -> Errors:
    if len(value.encode()) > limit:
        yield invalid(root(field), "", f"can have at most {limit} characters")


def validate_strictly(event: Json) -> Errors:
    """Validate a new event of events.k8s.io/v1, except its metadata."""
    yield from _validate_series(event)
    if event.get("eventTime") is None:
        yield required(root("eventTime"))
    if (kind := text(event, "type")) not in ("Normal", "Warning"):
        yield invalid(root("type"), "", f"has invalid value: {kind}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            yield invalid(root(field), "", _NEEDS_UNSET)
    if text(event, "source", "component") or text(event, "source", "host"):
        yield invalid(root("source"), "", _NEEDS_UNSET)


def _validate_series(event: Json) -> Errors:
    series = event.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        yield invalid(root("series.count"), "", "should be at least 2")
    if series.get("lastObservedTime") is None:
        yield required(root("series.lastObservedTime"))


def validate_unchanged(event: Json, old: Json) -> Errors:
    """Through events.k8s.io/v1 only the series of an event may change."""
    if event.get("series") != old.get("series"):
        yield from _validate_series(event)
    new, before = _shown(event), _shown(old)
    for field in _IMMUTABLE:
        yield from validate_immutable_field(new[field], before[field], root(field))


_IMMUTABLE = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)
"""Upstream's order, which checks the reason twice."""


def _shown(event: Json) -> Json:
    """Return the fields as upstream's messages print them."""
    words = ("reason", "message", "type", "action", "reportingInstance")
    times = ("firstTimestamp", "lastTimestamp", "eventTime")
    return (
        {field: text(event, field) for field in words}
        | {field: event.get(field) for field in times}
        | {
            "involvedObject": internal_form("ObjectReference", part(event, "involvedObject")),
            "related": internal_form("ObjectReference", event.get("related")),
            "source": {"Component": text(event, "source", "component"), "Host": text(event, "source", "host")},
            "count": event.get("count") or 0,
            "reportingController": text(event, "reportingComponent"),
        }
    )
