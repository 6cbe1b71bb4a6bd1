"""Deployments. Their annotations are copied to replica sets, so that a new annotation is a new generation too."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.apps.deployment_validation import validate_deployment_spec, validate_deployment_status
from pilothouse.kube.apps.rollback import carry_rollback, default_rollback
from pilothouse.kube.gated_fields import gated
from pilothouse.kube.pod_names import pod_name_warnings
from pilothouse.kube.pod_templates import default_pod_template
from pilothouse.kube.strategy import StatusSubresource
from pilothouse.kube.template_columns import READY, container_columns, selector_column
from pilothouse.kube.validation.label_selectors import selector_of, validate_selector_unchanged
from pilothouse.kube.validation.replica_counts import validate_collisions
from pilothouse.kube.workloads import WorkloadStrategy
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, metadata, number, part

_SPEC, _STATUS = root("spec"), root("status")
_API = "io.k8s.api.apps.v1."


class DeploymentStrategy(WorkloadStrategy):
    kind = GroupVersionKind("apps", "v1", "Deployment")

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
        default_pod_template(spec["template"])

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

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        yield from pod_name_warnings(obj)
        yield from super().warnings_on_create(obj)


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
        yield from validate_collisions(part(obj, "status"), part(old, "status"), _STATUS)


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
        READY,
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
        *container_columns(),
        selector_column(f"{_API}DeploymentSpec", _selector),
    ],
)
