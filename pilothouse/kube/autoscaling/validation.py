"""Validation of an autoscaler's spec. An update may keep existing faults."""

from __future__ import annotations

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.validation.container_resources import validate_container_resource_name
from pilothouse.kube.validation.fields import dns_label, follow, nonnegative_quantity, one_of, positive
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, declared, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, items, number, part, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.names import is_valid_path_segment_name

MAX_PERIOD_SECONDS = 1800

MAX_STABILIZATION_WINDOW_SECONDS = 3600

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}

_CHECKED = ("object", "external", "pods", "resource", "containerResource")
"""Lookup order of sources: the first source present is validated."""

_MISSING_VALUE = {
    "object": "must set either a target value or averageValue",
    "external": "must set either a target value for metric or a per-pod target",
    "pods": "must specify a positive target averageValue",
}


def validate_autoscaler_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    to_zero = enabled("HPAScaleToZero") or (old is not None and old.get("minReplicas") == 0)
    lowest = 0 if to_zero else 1
    least, most = spec.get("minReplicas"), number(spec, "maxReplicas")
    if least is not None and least < lowest:
        reason = f"must be greater than or equal to {lowest}"
        yield declared(invalid(path.child("minReplicas"), least, reason), reason)
    if most <= 0 and not version_rules.holds("AlignedMessages"):
        yield invalid(path.child("maxReplicas"), most, "must be greater than 0")
    elif most == 0:
        yield declared(required(path.child("maxReplicas"), "must be set and greater than 0"))
    elif most < 0:
        reason = "must be greater than or equal to 1"
        yield declared(invalid(path.child("maxReplicas"), most, reason), reason)
    if least is not None and most < least:
        yield invalid(path.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`")
    target = part(spec, "scaleTargetRef")
    yield from validate_reference(target, path.child("scaleTargetRef"), _target_rules(target, old))
    metrics_path = path.child("metrics")
    references = _metric_rules(old)
    metrics = items(spec, "metrics")
    for position, metric in enumerate(metrics):
        yield from validate_metric(metric, metrics_path.index(position), references)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        reason = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(metrics_path, reason)
    for direction in ("scaleUp", "scaleDown"):
        rules = part(spec, "behavior").get(direction)
        if rules is not None:
            yield from _validate_rules(rules, path.child("behavior", direction))


def _target_rules(target: Json, old: Json | None) -> ReferenceRules:
    """Allow the legacy group for ReplicationControllers, its only scalable kind."""
    before = part(old or {}, "scaleTargetRef")
    if old is not None and all(text(before, name) == text(target, name) for name in ("apiVersion", "kind")):
        return ReferenceRules(allow_any_version=True)
    return ReferenceRules(allow_empty_group=text(target, "kind") == "ReplicationController")


def _metric_rules(old: Json | None) -> ReferenceRules:
    described = (
        part(metric, "object", "describedObject")
        for metric in items(old or {}, "metrics")
        if metric.get("type") == "Object" and metric.get("object") is not None
    )
    was_wrong = any(version_problem(reference, _OBJECT_METRICS) for reference in described)
    return ReferenceRules(allow_empty_group=True, allow_any_version=was_wrong)


def _validate_rules(rules: Json, path: Path) -> Errors:
    window = rules.get("stabilizationWindowSeconds") or 0
    if window < 0:
        yield invalid(path.child("stabilizationWindowSeconds"), window, "must be greater than or equal to zero")
    if window > MAX_STABILIZATION_WINDOW_SECONDS:
        reason = f"must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}"
        yield invalid(path.child("stabilizationWindowSeconds"), window, reason)
    if rules.get("selectPolicy") is not None:
        yield from one_of(rules["selectPolicy"], path.child("selectPolicy"), ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        yield required(path.child("policies"), "must specify at least one Policy")
    for position, policy in enumerate(items(rules, "policies")):
        yield from _validate_policy(policy, path.child("policies").index(position))
    if rules.get("tolerance") is not None:
        yield from nonnegative_quantity(parse_quantity(rules["tolerance"]), path.child("tolerance"))


def _validate_policy(policy: Json, path: Path) -> Errors:
    yield from one_of(text(policy, "type"), path.child("type"), ("Percent", "Pods"))
    yield from positive(number(policy, "value"), path.child("value"))
    period = number(policy, "periodSeconds")
    yield from positive(period, path.child("periodSeconds"))
    if period > MAX_PERIOD_SECONDS:
        yield invalid(path.child("periodSeconds"), period, f"must be less than or equal to {MAX_PERIOD_SECONDS}")


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
        metric = part(source, "metric")
        metric_path = path.child("metric")
        if not metric.get("name"):
            yield required(metric_path.child("name"), "must specify a metric name")
        else:
            yield from follow(is_valid_path_segment_name, metric["name"], metric_path.child("name"))
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
            reason = "must set either a target raw value or a target utilization"
            yield required(path.child("averageUtilization"), reason)
        if percent is not None and average is not None:
            reason = "may not set both a target raw value and a target utilization"
            yield forbidden(path.child("averageValue"), reason)
    else:
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


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    allow_empty_group: bool = False
    allow_any_version: bool = False


_OBJECT_METRICS = ReferenceRules(allow_empty_group=True)


def validate_reference(reference: Json, path: Path, rules: ReferenceRules) -> Errors:
    for name in ("kind", "name"):
        if not reference.get(name):
            yield required(path.child(name))
        else:
            yield from follow(is_valid_path_segment_name, reference[name], path.child(name))
    if problem := version_problem(reference, rules):
        yield invalid(path.child("apiVersion"), text(reference, "apiVersion"), problem)


def version_problem(reference: Json, rules: ReferenceRules) -> str:
    """Return the problem with the apiVersion of the reference, or an empty string."""
    if rules.allow_any_version:
        return ""
    try:
        version = GroupVersion.parse(text(reference, "apiVersion"))
    except ValueError as error:
        return str(error)
    return "" if version.group or rules.allow_empty_group else "apiVersion must specify API group"
