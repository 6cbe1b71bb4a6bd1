"""ReplicationControllers: predecessors of ReplicaSets, with equality-based selectors."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import generation_of
from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.scale import Scaling
from pilothouse.apiserver.registry.strategy import GarbageCollection
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube import workloads
from pilothouse.kube.strategy import StatusSubresource
from pilothouse.kube.validation.fields import nonnegative
from pilothouse.kube.validation.replica_counts import validate_counts, validate_parts_of_replicas
from pilothouse.kube.validation.replicated_templates import validate_replicated_template
from pilothouse.machinery.field import Errors, ErrorType, FieldError, declared, invalid, required, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, number, part
from pilothouse.machinery.selectors.labels import format_labels, from_set
from pilothouse.machinery.validation.immutable import semantically_equal
from pilothouse.machinery.validation.names import name_is_long_name

_SPEC, _STATUS = root("spec"), root("status")
_TEMPLATE = root("spec", "template")
_API = "io.k8s.api.core.v1."
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_NOT_CONVERTIBLE = "non-convertible.kubernetes.io"


class ReplicationControllerStrategy(workloads.ReplicatedStrategy):
    kind = GroupVersionKind("", "v1", "ReplicationController")
    validates_generate_name = False
    garbage_collection = GarbageCollection.ORPHAN_DEPENDENTS
    name_rule = staticmethod(name_is_long_name)

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        if spec.get("template") is None:
            return
        if labels := labels_of(spec["template"]):
            spec["selector"] = spec.get("selector") or dict(labels)
            metadata(obj)["labels"] = labels_of(obj) or dict(labels)
        workloads.default_pod_template(spec["template"])

    def validate_spec(self, spec: Json, old: Json | None = None) -> Errors:
        for error in nonnegative(number(spec, "minReadySeconds"), _SPEC.child("minReadySeconds")):
            yield declared(error, error.detail, place=2)
        if not spec.get("selector"):
            yield required(_SPEC.child("selector"))
        for error in nonnegative(number(spec, "replicas"), _SPEC.child("replicas")):
            yield declared(error, error.detail)
        if spec.get("template") is None:
            yield required(_TEMPLATE)
            return
        selector, before = from_set(spec.get("selector") or {}), (old or {}).get("template")
        yield from validate_replicated_template(
            spec["template"], selector, _TEMPLATE, owner="ReplicationController", old=before
        )

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from super().validate_update(obj, old)
        for key, value in sorted(annotations_of(old).items()):
            name, slash, broken = key.partition("/")
            if not name.startswith(_NOT_CONVERTIBLE) or not slash or "/" in broken:
                continue
            if "selector" not in broken:
                yield FieldError(ErrorType.NOT_FOUND, broken, value, "unknown non-convertible field")
            elif not semantically_equal(obj["spec"].get("selector"), old["spec"].get("selector")):
                reason = "cannot update non-convertible selector"
                yield invalid(_SPEC.child("selector"), obj["spec"].get("selector"), reason)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if generation_of(obj) == generation_of(old):
            return ()
        # Upstream passes the old template here; clients see the old template's warnings.
        return workloads.template_warnings(self.template_of(old), self.template_path)


class ReplicationControllerStatusStrategy(StatusSubresource, ReplicationControllerStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        status = part(obj, "status")
        yield from validate_counts(status, _STATUS, "replicas", *_PARTS, "observedGeneration")
        yield from validate_parts_of_replicas(status, _STATUS, _PARTS)


def _count(name: str, holder: str, field: str) -> Column:
    definition = f"{_API}ReplicationController{holder.capitalize()}"
    return Column(name, lambda obj: number(obj, holder, field), type="integer", documented=(definition, field))


REPLICATION_CONTROLLER_SCALING = Scaling(selector=lambda obj: str(from_set(part(obj, "spec", "selector"))))

REPLICATION_CONTROLLERS = Resource(
    names=Names("replicationcontrollers", kind="ReplicationController", short=["rc"], categories=["all"]),
    strategy=ReplicationControllerStrategy(),
    storage_path="controllers",
    fields=lambda obj: metadata_fields(obj) | {"status.replicas": str(number(obj, "status", "replicas"))},
    columns=[
        NAME,
        _count("Desired", "spec", "replicas"),
        _count("Current", "status", "replicas"),
        _count("Ready", "status", "readyReplicas"),
        AGE,
        *workloads.container_columns(),
        workloads.selector_column(
            f"{_API}ReplicationControllerSpec", lambda obj: format_labels(part(obj, "spec", "selector"))
        ),
    ],
)
