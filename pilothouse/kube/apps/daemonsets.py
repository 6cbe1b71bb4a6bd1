"""DaemonSets. An annotation counts their templates; it was a field once, and only the server changes it."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.apps.daemonset_validation import validate_daemon_set_spec, validate_daemon_set_status
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.pod_templates import default_pod_template, template_warnings
from pilothouse.kube.strategy import StatusSubresource
from pilothouse.kube.template_columns import container_columns, selector_column
from pilothouse.kube.validation.label_selectors import validate_selector_unchanged
from pilothouse.kube.validation.replica_counts import validate_collisions
from pilothouse.kube.workloads import WorkloadStrategy
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.integers import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, metadata, number, part
from pilothouse.machinery.selectors.labels import format_labels

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_SPEC, _STATUS = root("spec"), root("status")
_API = "io.k8s.api.apps.v1."


class DaemonSetStrategy(WorkloadStrategy):
    kind = GroupVersionKind("apps", "v1", "DaemonSet")

    def default(self, obj: Json) -> None:
        """Raises BadRequest when the annotation is no number."""
        _default_template_generation(obj)
        spec = obj["spec"]
        strategy = spec.setdefault("updateStrategy", {})
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        default_pod_template(obj["spec"]["template"])

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
        return template_warnings(obj["spec"]["template"], self.template_path)


class DaemonSetStatusStrategy(StatusSubresource, DaemonSetStrategy):
    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        _set_template_generation(obj, _template_generation(old))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_daemon_set_status(part(obj, "status"), _STATUS)
        yield from validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


def _default_template_generation(obj: Json) -> None:
    """Whoever writes an object has sent the annotation, so that the field manager counts it among the sender's."""
    text = annotations_of(obj).get(TEMPLATE_GENERATION)
    try:
        _set_template_generation(obj, 0 if text is None else parse_int64(text))
    except ValueError as error:
        raise BadRequest(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None


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
        *container_columns(),
        selector_column(f"{_API}DaemonSetSpec"),
    ],
)
