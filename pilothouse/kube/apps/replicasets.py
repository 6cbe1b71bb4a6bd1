"""ReplicaSets."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube import workloads
from pilothouse.kube.apps.deployments import validate_selector_and_template
from pilothouse.kube.strategy import StatusSubresource, gated
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.replica_counts import validate_counts, validate_parts_of_replicas
from pilothouse.kube.validation.selectors import validate_selector_unchanged
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, number, part

_SPEC, _STATUS = root("spec"), root("status")
_API = "io.k8s.api.apps.v1."
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaSetStrategy(workloads.ReplicatedStrategy):
    kind = GroupVersionKind("apps", "v1", "ReplicaSet")

    def default(self, obj: Json) -> None:
        obj["spec"].setdefault("replicas", 1)
        workloads.default_pod_template(obj["spec"]["template"])

    def validate_spec(self, spec: Json, old: Json | None = None) -> Errors:
        yield from nonnegative(number(spec, "replicas"), _SPEC.child("replicas"))
        yield from nonnegative(number(spec, "minReadySeconds"), _SPEC.child("minReadySeconds"))
        yield from validate_selector_and_template(spec, _SPEC, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from super().validate_update(obj, old)
        selector, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from validate_selector_unchanged(selector, before, _SPEC.child("selector"))


class ReplicaSetStatusStrategy(StatusSubresource, ReplicaSetStrategy):
    gated_status_fields = (gated("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas"),)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        status = part(obj, "status")
        yield from validate_counts(status, _STATUS, "replicas", *_PARTS, "observedGeneration", "terminatingReplicas")
        yield from validate_parts_of_replicas(status, _STATUS, _PARTS)


REPLICA_SETS = Resource(
    names=Names("replicasets", kind="ReplicaSet", short=["rs"], categories=["all"]),
    strategy=ReplicaSetStrategy(),
    status=ReplicaSetStatusStrategy(),
    group="apps",
    zero_value={"spec": {"replicas": 0}},
    columns=[
        NAME,
        Column(
            "Desired",
            lambda obj: number(obj, "spec", "replicas"),
            type="integer",
            documented=(f"{_API}ReplicaSetSpec", "replicas"),
        ),
        Column(
            "Current",
            lambda obj: number(obj, "status", "replicas"),
            type="integer",
            documented=(f"{_API}ReplicaSetStatus", "replicas"),
        ),
        Column(
            "Ready",
            lambda obj: number(obj, "status", "readyReplicas"),
            type="integer",
            documented=(f"{_API}ReplicaSetStatus", "readyReplicas"),
        ),
        AGE,
        *workloads.container_columns(),
        workloads.selector_column(f"{_API}ReplicaSetSpec"),
    ],
)
