"""Deployments. Annotations are copied to replica sets, so their changes increment the generation."""

from __future__ import annotations

from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube import workloads
from pilothouse.kube.strategy import StatusSubresource, gated
from pilothouse.kube.validation import replica_counts
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.replicated_templates import validate_replicated_template
from pilothouse.kube.validation.selectors import selector_of, shown_selector, validate_selector_unchanged
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, root
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, metadata, number, part
from pilothouse.machinery.validation.object_meta import validate_nonnegative_field

_SPEC, _STATUS = root("spec"), root("status")
_API = "io.k8s.api.apps.v1."

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")

ROLLBACK_TO = "deprecated.deployment.rollback.revision"


class DeploymentStrategy(workloads.WorkloadStrategy):
    kind = GroupVersionKind("apps", "v1", "Deployment")
    names_pods = True

    def default(self, obj: Json) -> None:
        default_rollback(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        workloads.default_pod_template(spec["template"])

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return super().is_new_generation(obj, old) or annotations_of(obj) != annotations_of(old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_deployment_spec(obj, _SPEC)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_deployment_spec(obj, _SPEC, old)
        selector, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from validate_selector_unchanged(selector, before, _SPEC.child("selector"))


class DeploymentStatusStrategy(StatusSubresource, DeploymentStrategy):
    gated_status_fields = (gated("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas"),)
    reset_fields = ("spec", "metadata.labels")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        carry_rollback(obj, old)
        carry_over(metadata(obj), metadata(old), "labels")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_deployment_status(part(obj, "status"), _STATUS)
        yield from replica_counts.validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


def _selector(obj: Json) -> str:
    selector = selector_of(part(obj, "spec").get("selector"))
    return "<invalid>" if selector is None else str(selector)


DEPLOYMENTS = Resource(
    names=Names("deployments", kind="Deployment", short=["deploy"], categories=["all"]),
    strategy=DeploymentStrategy(),
    status=DeploymentStatusStrategy(),
    group="apps",
    zero_value={"spec": {"replicas": 0}},
    columns=[
        NAME,
        workloads.READY,
        Column(
            "Up-to-date",
            lambda obj: number(obj, "status", "updatedReplicas"),
            documented=(f"{_API}DeploymentStatus", "updatedReplicas"),
        ),
        Column(
            "Available",
            lambda obj: number(obj, "status", "availableReplicas"),
            documented=(f"{_API}DeploymentStatus", "availableReplicas"),
        ),
        AGE,
        *workloads.container_columns(),
        workloads.selector_column(f"{_API}DeploymentSpec", _selector),
    ],
)


def validate_deployment_spec(obj: Json, path: Path, old: Json | None = None) -> Errors:
    spec = obj["spec"]
    yield from nonnegative(number(spec, "replicas"), path.child("replicas"))
    yield from validate_selector_and_template(spec, path, old["spec"] if old else None)
    strategy = spec["strategy"]
    strategy_path = path.child("strategy")
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            reason = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden(strategy_path.child("rollingUpdate"), reason)
    elif kind == "RollingUpdate":
        yield from _validate_rolling_update(rolling or {}, strategy_path.child("rollingUpdate"))
    else:
        rendered = None
        if rolling is not None:
            rendered = {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}
        yield not_supported(
            strategy_path,
            {"Type": strategy.get("type") or "", "RollingUpdate": rendered},
            ("Recreate", "RollingUpdate"),
        )
    yield from nonnegative(number(spec, "minReadySeconds"), path.child("minReadySeconds"))
    yield from nonnegative(number(spec, "revisionHistoryLimit"), path.child("revisionHistoryLimit"))
    yield from validate_rollback(obj, path.child("rollback"))
    progress_deadline_seconds_path = path.child("progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from nonnegative(deadline, progress_deadline_seconds_path)
        if deadline <= number(spec, "minReadySeconds"):
            yield invalid(progress_deadline_seconds_path, deadline, "must be greater than minReadySeconds")


def validate_selector_and_template(spec: Json, path: Path, old: Json | None) -> Errors:
    """Validate selector and template of deployments and replica sets. Upstream's messages call both deployments."""
    yield from workloads.validate_required_selector(spec.get("selector"), path.child("selector"), "deployment")
    selector = selector_of(spec.get("selector"))
    if selector is None:
        yield invalid(path.child("selector"), shown_selector(spec["selector"]), "invalid label selector")
        return
    yield from validate_replicated_template(
        spec["template"], selector, path.child("template"), owner="ReplicaSet", old=part(old or {}, "template") or None
    )


def validate_deployment_status(status: Json, path: Path) -> Errors:
    counts = ("observedGeneration", *_COUNTS, "terminatingReplicas", "collisionCount")
    yield from replica_counts.validate_counts(status, path, *counts)
    yield from replica_counts.validate_parts_of_replicas(
        status, path, ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _validate_rolling_update(rolling: Json, path: Path) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from replica_counts.validate_positive_int_or_percent(unavailable, path.child("maxUnavailable"))
    yield from replica_counts.validate_positive_int_or_percent(surge, path.child("maxSurge"))
    if replica_counts.int_or_percent_value(unavailable) == 0 and replica_counts.int_or_percent_value(surge) == 0:
        yield invalid(
            path.child("maxUnavailable"), replica_counts.printable(unavailable), "may not be 0 when `maxSurge` is 0"
        )
    yield from replica_counts.validate_not_more_than_100_percent(unavailable, path.child("maxUnavailable"))


def default_rollback(obj: Json) -> None:
    """Normalize the rollback annotation; drop an empty annotation. Raise BadRequest."""
    annotations = annotations_of(obj)
    if ROLLBACK_TO not in annotations:
        return
    text = annotations.pop(ROLLBACK_TO)
    if text:
        try:
            annotations[ROLLBACK_TO] = str(parse_int64(text))
        except ValueError as error:
            reason = f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}"
            raise BadRequest(f'Deployment in version "v1" cannot be handled as a Deployment: {reason}') from None
    elif not annotations:
        metadata(obj).pop("annotations")


def carry_rollback(obj: Json, old: Json) -> None:
    """Keep the stored rollback on status writes, because it belongs to the spec."""
    annotations = {key: value for key, value in annotations_of(obj).items() if key != ROLLBACK_TO}
    if ROLLBACK_TO in annotations_of(old):
        annotations[ROLLBACK_TO] = annotations_of(old)[ROLLBACK_TO]
    metadata(obj).pop("annotations", None)
    if annotations:
        metadata(obj)["annotations"] = annotations


def validate_rollback(obj: Json, path: Path) -> Errors:
    if revision := annotations_of(obj).get(ROLLBACK_TO):
        yield from validate_nonnegative_field(int(revision), path.child("version"))
