"""The metrics that an autoscaler looks at: each has one source, that of its type."""

from __future__ import annotations

from pilothouse.kube.autoscaling.object_references import ReferenceRules, validate_reference
from pilothouse.kube.core.pods.validation.container_resources import validate_container_resource_name
from pilothouse.kube.validation.fields import dns_label, follow
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_CHECKED = ("object", "external", "pods", "resource", "containerResource")
"""The order in which sources are looked for: only the first one that is there is looked into."""


def validate_metric(metric: Json, path: Path, references: ReferenceRules) -> Errors:
    kind = text(metric, "type")
    if not kind:
        yield required(path.child("type"), "must specify a metric source type")
    if kind not in _SOURCES:
        yield not_supported(path.child("type"), kind, _SOURCES)
    present = [name for name in _CHECKED if metric.get(name) is not None]
    if present:
        yield from _validate_source(present[0], metric[present[0]], path.child(present[0]), references)
    expected = _SOURCES.get(kind)
    if expected is None:
        yield not_supported(path.child("type"), kind, _SOURCES)
    elif expected not in present:
        yield required(path.child(expected), "must populate information for the given metric source")
    if len(present) > 1:
        for name in sorted(set(present) - {expected}):
            yield forbidden(path.child(name), "must populate the given metric source only")


def _validate_source(name: str, source: Json, path: Path, references: ReferenceRules) -> Errors:
    if name == "object":
        yield from validate_reference(part(source, "describedObject"), path.child("describedObject"), references)
    if name in ("object", "external", "pods"):
        yield from _validate_identifier(part(source, "metric"), path.child("metric"))
    else:
        if not source.get("name"):
            yield required(path.child("name"), "must specify a resource name")
        elif name == "containerResource":
            yield from validate_container_resource_name(source["name"], path.child("name"))
        if name == "containerResource":
            if not source.get("container"):
                yield required(path.child("container"), "must specify a container")
            else:
                yield from dns_label(source["container"], path.child("container"))
    target, path = part(source, "target"), path.child("target")
    yield from _validate_target(target, path)
    if name in ("resource", "containerResource"):
        percent, average = target.get("averageUtilization"), target.get("averageValue")
        if percent is None and average is None:
            why = "must set either a target raw value or a target utilization"
            yield required(path.child("averageUtilization"), why)
        if percent is not None and average is not None:
            why = "may not set both a target raw value and a target utilization"
            yield forbidden(path.child("averageValue"), why)
    else:
        yield from _validate_value_target(name, target, path)


_MISSING_VALUE = {
    "object": "must set either a target value or averageValue",
    "external": "must set either a target value for metric or a per-pod target",
    "pods": "must specify a positive target averageValue",
}


def _validate_value_target(name: str, target: Json, path: Path) -> Errors:
    value, average = target.get("value"), target.get("averageValue")
    if average is None and (value is None or name == "pods"):
        yield required(path.child("averageValue"), _MISSING_VALUE[name])
    if name == "external" and value is not None and average is not None:
        yield forbidden(path.child("value"), "may not set both a target value for metric and a per-pod target")


def _validate_target(target: Json, path: Path) -> Errors:
    kind = text(target, "type")
    if not kind:
        yield required(path.child("type"), "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid(path.child("type"), kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        amount = target.get(name)
        if amount is not None and parse_quantity(amount).sign != 1:
            yield invalid(path.child(name), amount, "must be positive")
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        yield invalid(path.child("averageUtilization"), percent, "must be greater than 0")


def _validate_identifier(metric: Json, path: Path) -> Errors:
    if not metric.get("name"):
        yield required(path.child("name"), "must specify a metric name")
    else:
        yield from follow(is_valid_path_segment_name, metric["name"], path.child("name"))
