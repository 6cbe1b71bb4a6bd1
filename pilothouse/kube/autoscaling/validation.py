"""Validation of an autoscaler's spec. An update may keep what was already wrong."""

from __future__ import annotations

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.autoscaling.metric_validation import validate_metric
from pilothouse.kube.autoscaling.object_references import ReferenceRules, validate_reference, version_problem
from pilothouse.kube.validation.fields import nonnegative_quantity, one_of, positive
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json, items, number, part, text
from pilothouse.machinery.quantity import parse_quantity

MAX_PERIOD_SECONDS = 1800
MAX_STABILIZATION_WINDOW_SECONDS = 3600

_OBJECT_METRICS = ReferenceRules(allow_empty_group=True)


def validate_autoscaler_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    to_zero = enabled("HPAScaleToZero") or (old is not None and old.get("minReplicas") == 0)
    lowest = 0 if to_zero else 1
    least, most = spec.get("minReplicas"), number(spec, "maxReplicas")
    if least is not None and least < lowest:
        yield invalid(path.child("minReplicas"), least, f"must be greater than or equal to {lowest}")
    if most == 0:
        yield required(path.child("maxReplicas"), "must be set and greater than 0")
    elif most < 0:
        yield invalid(path.child("maxReplicas"), most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid(path.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`")
    target = part(spec, "scaleTargetRef")
    yield from validate_reference(target, path.child("scaleTargetRef"), _target_rules(target, old))
    yield from _validate_metrics(spec, path.child("metrics"), _metric_rules(old))
    for direction in ("scaleUp", "scaleDown"):
        rules = part(spec, "behavior").get(direction)
        if rules is not None:
            yield from _validate_rules(rules, path.child("behavior", direction))


def _target_rules(target: Json, old: Json | None) -> ReferenceRules:
    """Replication controllers are the one scalable kind of the legacy group."""
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


def _validate_metrics(spec: Json, path: Path, references: ReferenceRules) -> Errors:
    metrics = items(spec, "metrics")
    for position, metric in enumerate(metrics):
        yield from validate_metric(metric, path.index(position), references)
    if spec.get("minReplicas") == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(path, why)


def _validate_rules(rules: Json, path: Path) -> Errors:
    window = rules.get("stabilizationWindowSeconds") or 0
    if window < 0:
        yield invalid(path.child("stabilizationWindowSeconds"), window, "must be greater than or equal to zero")
    if window > MAX_STABILIZATION_WINDOW_SECONDS:
        why = f"must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}"
        yield invalid(path.child("stabilizationWindowSeconds"), window, why)
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
