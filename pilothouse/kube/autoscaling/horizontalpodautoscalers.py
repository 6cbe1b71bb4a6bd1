"""HorizontalPodAutoscalers, stored as autoscaling/v2. Before 1.37, the generation is not incremented."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apiserver.registry.metadata import begin_generation, carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.autoscaling.defaults import KIND, default_autoscaler_spec
from pilothouse.kube.autoscaling.v1 import drop_annotations
from pilothouse.kube.autoscaling.validation import validate_autoscaler_spec
from pilothouse.kube.strategy import KubeStrategy, StatusSubresource, drop_disabled, gated, zero_value
from pilothouse.kube.validation.replica_counts import validate_counts
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json, items, metadata, number, part, text
from pilothouse.machinery.validation.immutable import semantically_equal

_SPEC = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec"

_STATUS = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus"

_GATED_FIELDS = (gated("HPAConfigurableTolerance", "behavior.scaleDown.tolerance", "behavior.scaleUp.tolerance"),)

_SHOWN = 2

_UNKNOWN = "<unknown>"

_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


class HorizontalPodAutoscalerStrategy(KubeStrategy):
    reset_fields: ClassVar[tuple[str, ...]] = ("status",)

    def default(self, obj: Json) -> None:
        drop_annotations(obj)
        default_autoscaler_spec(obj["spec"])

    def canonicalize(self, obj: Json) -> None:
        # Repeated here: autoscaling/v1 has no default behavior, and stored objects are complete.
        default_autoscaler_spec(obj["spec"])

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = zero_value(KIND, "status")
        if enabled("HPAGeneration"):
            metadata(obj)["generation"] = 1
        drop_disabled(obj["spec"], None, _GATED_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        drop_disabled(obj["spec"], old["spec"], _GATED_FIELDS)
        if enabled("HPAGeneration") and not semantically_equal(obj["spec"], old["spec"]):
            begin_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_autoscaler_spec(obj["spec"], root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_autoscaler_spec(obj["spec"], root("spec"), old["spec"])


class HorizontalPodAutoscalerStatusStrategy(StatusSubresource, HorizontalPodAutoscalerStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_counts(part(obj, "status"), root("status"), "currentReplicas", "desiredReplicas")


def _reference(obj: Json) -> str:
    return f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}"


def format_metrics(obj: Json) -> str:
    metrics, statuses = items(obj, "spec", "metrics"), items(obj, "status", "currentMetrics")
    if not metrics:
        return "<none>"
    cells = [
        _format_metric(metric, statuses[position] if position < len(statuses) else {})
        for position, metric in enumerate(metrics[:_SHOWN])
    ]
    more = len(metrics) - _SHOWN
    return ", ".join(cells) + (f" + {more} more..." if more > 0 else "")


def _format_metric(metric: Json, status: Json) -> str:
    source = _SOURCES.get(text(metric, "type"))
    if source is None:
        return "<unknown type>"
    target, current = part(metric, source, "target"), status.get(source) and part(status, source, "current")
    if source in ("resource", "containerResource"):
        return f"{text(metric, source, 'name')}: {_format_resource(target, current)}"
    average = target.get("averageValue")
    if source == "pods":
        return f"{_amount(current, 'averageValue', '<nil>')}/{average}"
    if average is not None:
        return f"{_amount(current, 'averageValue', _UNKNOWN)}/{average} (avg)"
    return f"{_amount(current, 'value', '<nil>')}/{target.get('value', '<nil>')}"


def _format_resource(target: Json, current: Json | None) -> str:
    average = target.get("averageValue")
    if average is not None:
        return f"{_amount(current, 'averageValue', '<nil>')}/{average}"
    return f"{_percent(current)}/{_percent(target, '<auto>')}"


def _amount(current: Json | None, field: str, missing: str) -> str:
    """`missing` is Go's output for a missing amount."""
    return _UNKNOWN if current is None else current.get(field, missing)


def _percent(values: Json | None, missing: str = _UNKNOWN) -> str:
    percent = (values or {}).get("averageUtilization")
    return missing if percent is None else f"{percent}%"


HORIZONTAL_POD_AUTOSCALERS = Resource(
    names=Names("horizontalpodautoscalers", kind="HorizontalPodAutoscaler", short=["hpa"], categories=["all"]),
    strategy=HorizontalPodAutoscalerStrategy(),
    status=HorizontalPodAutoscalerStatusStrategy(),
    group="autoscaling",
    version="v2",
    columns=[
        NAME,
        Column("Reference", _reference, documented=(_SPEC, "scaleTargetRef")),
        Column("Targets", format_metrics, documented=(_SPEC, "metrics")),
        Column(
            "MinPods",
            lambda obj: str(part(obj, "spec").get("minReplicas", "<unset>")),
            documented=(_SPEC, "minReplicas"),
        ),
        Column("MaxPods", lambda obj: number(obj, "spec", "maxReplicas"), documented=(_SPEC, "maxReplicas")),
        Column(
            "Replicas", lambda obj: number(obj, "status", "currentReplicas"), documented=(_STATUS, "currentReplicas")
        ),
        AGE,
    ],
)
