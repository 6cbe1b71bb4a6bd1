"""Conversion of autoscaling/v1: fields for CPU utilization, annotations for other metrics.

The behavior annotation uses Go field names.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson

from pilothouse.kube.autoscaling import v1_metrics
from pilothouse.kube.autoscaling.defaults import DEFAULT_CPU_UTILIZATION, KIND, cpu_utilization
from pilothouse.kube.served import VersionConversion, fitted
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, items, metadata, part
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import DecodeError, ObjectType

V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")

_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_SCALING_RULE_FIELDS = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY_FIELDS = ("Type", "Value", "PeriodSeconds")
_DIRECTIONS = ("ScaleUp", "ScaleDown")
_API_NAMES = {
    name.lower(): name[0].lower() + name[1:] for name in (*_DIRECTIONS, *_SCALING_RULE_FIELDS, *_POLICY_FIELDS)
}

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


def to_v2(obj: Json) -> Json:
    out = {"kind": KIND.kind, "apiVersion": KIND.api_version, "metadata": deepcopy(part(obj, "metadata"))}
    out |= {"spec": _spec_to_v2(obj), "status": _status_to_v2(obj)}
    drop_annotations(out)
    return fitted(KIND, out)


def from_v2(obj: Json) -> Json:
    out = {"kind": V1.kind, "apiVersion": V1.api_version, "metadata": deepcopy(part(obj, "metadata"))}
    out |= {"spec": _spec_to_v1(part(obj, "spec")), "status": _status_to_v1(part(obj, "status"))}
    drop_annotations(out)
    if annotations := _annotations(obj):
        metadata(out)["annotations"] = annotations_of(out) | annotations
    return fitted(V1, out)


def _default(obj: Json) -> None:
    part(obj, "spec").setdefault("minReplicas", 1)


def _spec_to_v2(obj: Json) -> Json:
    spec, annotations = part(obj, "spec"), annotations_of(obj)
    out: Json = {name: deepcopy(spec[name]) for name in _SPEC if name in spec}
    percent = spec.get("targetCPUUtilizationPercentage")
    others = decode_list(annotations.get(METRICS), "v1", "MetricSpec") or []
    out["metrics"] = [v1_metrics.metric_to_v2(metric) for metric in others]
    if percent is not None or not others:
        out["metrics"].append(cpu_utilization(DEFAULT_CPU_UTILIZATION if percent is None else percent))
    if behavior := _behavior_to_v2(annotations.get(BEHAVIOR)):
        out["behavior"] = behavior
    return out


def _status_to_v2(obj: Json) -> Json:
    """Convert the status. Annotations are more precise and take precedence over fields."""
    status, annotations = part(obj, "status"), annotations_of(obj)
    out: Json = {name: status[name] for name in _STATUS if name in status}
    percent = status.get("currentCPUUtilizationPercentage")
    if percent is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        out["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    current = decode_list(annotations.get(CURRENT_METRICS), "v1", "MetricStatus")
    if current is not None:
        out["currentMetrics"] = [v1_metrics.metric_status_to_v2(metric) for metric in current]
    conditions = decode_list(annotations.get(CONDITIONS), "v1", "HorizontalPodAutoscalerCondition")
    return out if conditions is None else out | {"conditions": conditions}


def _spec_to_v1(spec: Json) -> Json:
    out: Json = {name: deepcopy(spec[name]) for name in _SPEC if name in spec}
    percents = (_cpu_percent(metric) for metric in spec.get("metrics") or ())
    percent = next((percent for percent in percents if percent is not None), None)
    return out if percent is None else out | {"targetCPUUtilizationPercentage": percent}


def _status_to_v1(status: Json) -> Json:
    out: Json = {name: status[name] for name in _STATUS if name in status}
    for metric in status.get("currentMetrics") or ():
        percent = part(metric, "resource", "current").get("averageUtilization")
        if _is_cpu(metric) and percent is not None:
            out["currentCPUUtilizationPercentage"] = percent
    return out


def _annotations(obj: Json) -> dict[str, str]:
    others = [
        v1_metrics.metric_to_v1(metric) for metric in items(obj, "spec", "metrics") if _cpu_percent(metric) is None
    ]
    current = [v1_metrics.metric_status_to_v1(metric) for metric in items(obj, "status", "currentMetrics")]
    conditions = [_shown_condition(condition) for condition in items(obj, "status", "conditions")]
    lists = {METRICS: others, CURRENT_METRICS: current, CONDITIONS: conditions}
    annotations = {name: encode(values) for name, values in lists.items() if values}
    if (behavior := part(obj, "spec").get("behavior")) is not None:
        annotations[BEHAVIOR] = encode({name: _shown_rules(behavior.get(_small(name))) for name in _DIRECTIONS})
    return annotations


def _shown_condition(condition: Json) -> Json:
    result = {name: condition.get(name) for name in ("type", "status", "lastTransitionTime")}
    return result | {name: condition[name] for name in ("reason", "message") if condition.get(name)}


def _is_cpu(metric: Json) -> bool:
    return metric.get("type") == "Resource" and part(metric, "resource").get("name") == "cpu"


def _cpu_percent(metric: Json) -> int | None:
    """Return the target percentage of the CPU metric."""
    return part(metric, "resource", "target").get("averageUtilization") if _is_cpu(metric) else None


def _behavior_to_v2(text: str | None) -> Json | None:
    """Return the behavior in the annotation, or None."""
    value = decode_object(text)
    behavior = value and decode_value(_renamed(value), "v2", "HorizontalPodAutoscalerBehavior")
    return behavior or None


def _shown_rules(rules: Json | None) -> Json | None:
    if rules is None:
        return None
    result = {name: rules.get(_small(name)) for name in _SCALING_RULE_FIELDS}
    policies = rules.get("policies")
    return result | {"Policies": policies and [{n: p.get(_small(n)) for n in _POLICY_FIELDS} for p in policies]}


def _renamed(value: Any) -> Any:
    """Rename Go fields, case-insensitively, to API fields. Drop null values."""
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {_API_NAMES.get(key.lower(), key): _renamed(each) for key, each in value.items() if each is not None}


def _small(name: str) -> str:
    return name[0].lower() + name[1:]


V1_CONVERSION = VersionConversion(kind=V1, to_stored=to_v2, from_stored=from_v2, default=_default)


def drop_annotations(obj: Json) -> None:
    annotations = metadata(obj).get("annotations")
    if not annotations or _ALL.isdisjoint(annotations):
        return
    remaining = {key: value for key, value in annotations.items() if key not in _ALL}
    if remaining:
        metadata(obj)["annotations"] = remaining
    else:
        del metadata(obj)["annotations"]


def encode(value: Any) -> str:
    """Return JSON as Go's encoder writes it."""
    return escape_html(orjson.dumps(value).decode())


def decode_list(text: str | None, version: str, kind: str) -> list[Json] | None:
    """Return the objects in an annotation, or None for invalid contents."""
    values = _parse(text)
    if not isinstance(values, list):
        return None
    decoded = [decode_value(value, version, kind) for value in values]
    result = [value for value in decoded if value is not None]
    return result if len(result) == len(decoded) else None


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
