"""DaemonSets. A server-owned annotation counts template generations; it used to be a field."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube import workloads
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.strategy import StatusSubresource
from pilothouse.kube.validation import replica_counts
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.replicated_templates import validate_labels_match, validate_runs_forever
from pilothouse.kube.validation.selectors import is_empty, selector_of, shown_selector, validate_selector_unchanged
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required, root
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, metadata, number, part
from pilothouse.machinery.selectors.labels import format_labels
from pilothouse.machinery.validation.labels import LabelSelectorRules, has_invalid_value, validate_label_selector

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_SPEC, _STATUS = root("spec"), root("status")
_API = "io.k8s.api.apps.v1."

_COUNTS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


class DaemonSetStrategy(workloads.WorkloadStrategy):
    kind = GroupVersionKind("apps", "v1", "DaemonSet")

    def default(self, obj: Json) -> None:
        """Raises BadRequest when the annotation is no number."""
        # Defaulted on decoding, so that managed fields assign the annotation to the client.
        text = annotations_of(obj).get(TEMPLATE_GENERATION)
        try:
            _set_template_generation(obj, 0 if text is None else parse_int64(text))
        except ValueError as error:
            raise BadRequest(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None
        spec = obj["spec"]
        strategy = spec.setdefault("updateStrategy", {})
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif (unused := strategy.get("rollingUpdate")) is not None:
            # Upstream's internal type has no pointers here, so that unset values become zero.
            unused.setdefault("maxUnavailable", 0)
            unused.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        workloads.default_pod_template(obj["spec"]["template"])

    def prepare_for_create(self, obj: Json) -> None:
        super().prepare_for_create(obj)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        is_new = not same_spec(obj["spec"]["template"], old["spec"]["template"])
        _set_template_generation(obj, _template_generation(old) + is_new)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_daemon_set_spec(obj["spec"], _SPEC)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        selector, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from validate_selector_unchanged(selector, before, _SPEC.child("selector"))
        yield from validate_daemon_set_spec(obj["spec"], _SPEC, old["spec"])

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if _template_generation(obj) == _template_generation(old):
            return ()
        return workloads.template_warnings(obj["spec"]["template"], self.template_path)


class DaemonSetStatusStrategy(StatusSubresource, DaemonSetStrategy):
    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        _set_template_generation(obj, _template_generation(old))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_daemon_set_status(part(obj, "status"), _STATUS)
        yield from replica_counts.validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


def _template_generation(obj: Json) -> int:
    return int(annotations_of(obj).get(TEMPLATE_GENERATION) or 0)


def _set_template_generation(obj: Json, generation: int) -> None:
    metadata(obj)["annotations"] = annotations_of(obj) | {TEMPLATE_GENERATION: str(generation)}


def _count(name: str, field: str) -> Column:
    return Column(
        name,
        lambda obj: number(obj, "status", field),
        type="integer",
        documented=(f"{_API}DaemonSetStatus", field),
    )


DAEMON_SETS = Resource(
    names=Names("daemonsets", kind="DaemonSet", short=["ds"], categories=["all"]),
    strategy=DaemonSetStrategy(),
    status=DaemonSetStatusStrategy(),
    group="apps",
    zero_value={"metadata": {"annotations": {TEMPLATE_GENERATION: "0"}}},
    field_annotations=frozenset({TEMPLATE_GENERATION}),
    columns=[
        NAME,
        _count("Desired", "desiredNumberScheduled"),
        _count("Current", "currentNumberScheduled"),
        _count("Ready", "numberReady"),
        _count("Up-to-date", "updatedNumberScheduled"),
        _count("Available", "numberAvailable"),
        Column(
            "Node Selector",
            lambda obj: format_labels(part(obj, "spec", "template", "spec", "nodeSelector")),
            documented=("io.k8s.api.core.v1.PodSpec", "nodeSelector"),
        ),
        AGE,
        *workloads.container_columns(),
        workloads.selector_column(f"{_API}DaemonSetSpec"),
    ],
)


def validate_daemon_set_spec(spec: Json, path: Path, old: Json | None = None) -> Errors:
    template = spec["template"]
    label_selector = spec.get("selector")
    rules = LabelSelectorRules(allow_invalid_values=has_invalid_value((old or {}).get("selector")))
    yield from validate_label_selector(label_selector, path.child("selector"), rules)
    if (selector := selector_of(label_selector)) is not None:
        yield from validate_labels_match(spec["template"], selector, path.child("template"))
    if label_selector is not None and is_empty(label_selector):
        reason = "empty selector is invalid for daemonset"
        yield invalid(path.child("selector"), shown_selector(label_selector), reason)
    yield from workloads.validate_template(template, path.child("template"), old and old["template"])
    yield from validate_runs_forever(template, path.child("template"), "DaemonSet")
    yield from nonnegative(number(spec, "minReadySeconds"), path.child("minReadySeconds"))
    strategy = spec["updateStrategy"]
    update_strategy_path = path.child("updateStrategy")
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        yield from _validate_rolling_update(rolling or {}, update_strategy_path.child("rollingUpdate"))
    elif kind != "OnDelete":
        rendered = rolling and {
            "MaxUnavailable": rolling.get("maxUnavailable", 0),
            "MaxSurge": rolling.get("maxSurge", 0),
        }
        yield not_supported(
            update_strategy_path,
            {"Type": strategy.get("type") or "", "RollingUpdate": rendered},
            ("RollingUpdate", "OnDelete"),
        )
    yield from nonnegative(number(spec, "revisionHistoryLimit"), path.child("revisionHistoryLimit"))


def validate_daemon_set_status(status: Json, path: Path) -> Errors:
    return replica_counts.validate_counts(status, path, *_COUNTS)


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    """Require exactly one of maxSurge and maxUnavailable to be nonzero."""
    limits = {name: rolling.get(name, 0) for name in ("maxUnavailable", "maxSurge")}
    for name, limit in limits.items():
        yield from replica_counts.validate_positive_int_or_percent(limit, path.child(name))
    for name, limit in limits.items():
        yield from replica_counts.validate_not_more_than_100_percent(limit, path.child(name))
    unavailable, surge = (replica_counts.int_or_percent_value(limit) for limit in limits.values())
    if unavailable and surge:
        reason = "may not be set when maxUnavailable is non-zero"
        yield invalid(path.child("maxSurge"), limits["maxSurge"], reason)
    elif not unavailable and not surge:
        yield required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")
