"""Metrics of autoscaling/v1, which exist in annotations only, and what they are in v2.

v2 groups what v1 keeps flat:
    v1  {"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "5"}}
    v2  {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
Objects for v1 have their fields in the order of Go's types, because they are shown as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.kube.validation.selectors import shown_selector
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.quantity import parse_quantity

_Convert: TypeAlias = Callable[[Json], Json]

SOURCES = ("object", "pods", "resource", "containerResource", "external")
"""Field with the details of each metric type, in the order of Go's struct."""


def metric_to_v1(metric: Json) -> Json:
    return _converted(metric, _SPEC_TO_V1)


def metric_to_v2(metric: Json) -> Json:
    return _converted(metric, _SPEC_TO_V2)


def metric_status_to_v1(metric: Json) -> Json:
    return _converted(metric, _STATUS_TO_V1)


def metric_status_to_v2(metric: Json) -> Json:
    return _converted(metric, _STATUS_TO_V2)


def _converted(metric: Json, converters: dict[str, _Convert]) -> Json:
    out: Json = {"type": text(metric, "type")}
    return out | {name: converters[name](metric[name]) for name in SOURCES if metric.get(name) is not None}


def _set(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _reference(source: Json) -> Json:
    reference: Json = {"kind": text(source, "kind"), "name": text(source, "name")}
    return reference | _set(apiVersion=source.get("apiVersion"))


def _identifier(source: Json, selector: str = "selector") -> Json:
    return {"name": text(source, "metricName")} | _set(selector=source.get(selector))


def _metric_name(source: Json) -> str:
    return text(source, "metric", "name")


def _selector(source: Json) -> Json | None:
    return shown_selector(part(source, "metric").get("selector"))


def _flat_object(source: Json, measured: Json, name: str) -> Json:
    return {
        "target": _reference(part(source, "describedObject")),
        "metricName": _metric_name(source),
        name: measured.get("value", "0"),
    } | _set(selector=_selector(source), averageValue=measured.get("averageValue"))


def _object_to_v2(source: Json) -> Json:
    value, average = source.get("targetValue") or "0", source.get("averageValue")
    # v1 requires the field: with an average, 0 means unset.
    has_value = average is None or bool(parse_quantity(value))
    target = {"type": "Value" if average is None else "AverageValue"}
    return {
        "describedObject": _reference(part(source, "target")),
        "target": target | _set(value=value if has_value else None, averageValue=average),
        "metric": _identifier(source),
    }


def _pods_to_v1(source: Json) -> Json:
    value = part(source, "target").get("averageValue", "0")
    flat: Json = {"metricName": _metric_name(source), "targetAverageValue": value}
    return flat | _set(selector=_selector(source))


def _pods_to_v2(source: Json) -> Json:
    target = {"type": "AverageValue", "averageValue": source.get("targetAverageValue") or "0"}
    return {"metric": _identifier(source), "target": target}


def _resource_to_v1(source: Json) -> Json:
    target = part(source, "target")
    flat: Json = {"name": text(source, "name")}
    flat |= _set(
        targetAverageUtilization=target.get("averageUtilization"), targetAverageValue=target.get("averageValue")
    )
    return flat | _set(container=source.get("container"))


def _resource_to_v2(source: Json) -> Json:
    utilization = source.get("targetAverageUtilization")
    target = {"type": "AverageValue" if utilization is None else "Utilization"}
    target |= _set(averageValue=source.get("targetAverageValue"), averageUtilization=utilization)
    return {"name": text(source, "name"), "target": target} | _set(container=source.get("container"))


def _external_to_v1(source: Json) -> Json:
    target = part(source, "target")
    return {"metricName": _metric_name(source)} | _set(
        metricSelector=_selector(source),
        targetValue=target.get("value"),
        targetAverageValue=target.get("averageValue"),
    )


def _external_to_v2(source: Json) -> Json:
    value = source.get("targetValue")
    target = {"type": "AverageValue" if value is None else "Value"}
    target |= _set(value=value, averageValue=source.get("targetAverageValue"))
    return {"metric": _identifier(source, "metricSelector"), "target": target}


def _object_status_to_v2(source: Json) -> Json:
    current = _set(value=source.get("currentValue") or "0", averageValue=source.get("averageValue"))
    return {"metric": _identifier(source), "current": current, "describedObject": _reference(part(source, "target"))}


def _pods_status_to_v1(source: Json) -> Json:
    value = part(source, "current").get("averageValue", "0")
    flat: Json = {"metricName": _metric_name(source), "currentAverageValue": value}
    return flat | _set(selector=_selector(source))


def _pods_status_to_v2(source: Json) -> Json:
    return {
        "metric": _identifier(source),
        "current": {"averageValue": source.get("currentAverageValue") or "0"},
    }


def _resource_status_to_v1(source: Json) -> Json:
    current = part(source, "current")
    flat = {"name": text(source, "name")} | _set(currentAverageUtilization=current.get("averageUtilization"))
    flat["currentAverageValue"] = current.get("averageValue", "0")
    return flat | _set(container=source.get("container"))


def _resource_status_to_v2(source: Json) -> Json:
    current = {"averageValue": source.get("currentAverageValue") or "0"}
    current |= _set(averageUtilization=source.get("currentAverageUtilization"))
    return {"name": text(source, "name"), "current": current} | _set(container=source.get("container"))


def _external_status_to_v1(source: Json) -> Json:
    current = part(source, "current")
    flat = {"metricName": _metric_name(source)} | _set(metricSelector=_selector(source))
    flat["currentValue"] = current.get("value", "0")
    return flat | _set(currentAverageValue=current.get("averageValue"))


def _external_status_to_v2(source: Json) -> Json:
    value, average = source.get("currentValue") or "0", source.get("currentAverageValue")
    return {"metric": _identifier(source, "metricSelector"), "current": _set(value=value, averageValue=average)}


def _by_source(*converters: _Convert) -> dict[str, _Convert]:
    return dict(zip(SOURCES, converters, strict=True))


_SPEC_TO_V1 = _by_source(
    lambda source: _flat_object(source, part(source, "target"), "targetValue"),
    _pods_to_v1,
    _resource_to_v1,
    _resource_to_v1,
    _external_to_v1,
)
_SPEC_TO_V2 = _by_source(_object_to_v2, _pods_to_v2, _resource_to_v2, _resource_to_v2, _external_to_v2)
_STATUS_TO_V1 = _by_source(
    lambda source: _flat_object(source, part(source, "current"), "currentValue"),
    _pods_status_to_v1,
    _resource_status_to_v1,
    _resource_status_to_v1,
    _external_status_to_v1,
)
_STATUS_TO_V2 = _by_source(
    _object_status_to_v2, _pods_status_to_v2, _resource_status_to_v2, _resource_status_to_v2, _external_status_to_v2
)
