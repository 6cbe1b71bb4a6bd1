"""The rules of claims and of their status."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.kube.core.persistentvolumeclaims.data_sources import normalize_data_sources, prepare_data_sources
from pilothouse.kube.core.persistentvolumeclaims.updates import validate_claim_update
from pilothouse.kube.core.persistentvolumes.validation import validate_basic_amount
from pilothouse.kube.core.persistentvolumes.warnings import BETA_STORAGE_CLASS, BETA_STORAGE_CLASS_DEPRECATED
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.defaults.volumes import default_claim_spec
from pilothouse.kube.core.pods.warnings.volumes import claim_warnings
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import qualified_name
from pilothouse.kube.validation.resource_names import is_native, validate_resource_amount
from pilothouse.kube.validation.volume_claims import NEW_CLAIM, ClaimRules, validate_claim_spec
from pilothouse.machinery.field import Errors, Path, not_supported, required, root
from pilothouse.machinery.objects import Json, annotations_of, items, part, resource_version_of, text
from pilothouse.machinery.validation.labels import validate_label_selector

_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeClaimStrategy(KubeStrategy):
    reset_fields = ("status",)

    def default(self, obj: Json) -> None:
        default_claim_spec(obj["spec"])
        status = obj["status"]
        status["phase"] = text(status, "phase") or "Pending"
        round_up(status.get("capacity"))
        round_up(status.get("allocatedResources"))

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}
        prepare_data_sources(obj["spec"], None)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "status")
        prepare_data_sources(obj["spec"], old["spec"])
        normalize_data_sources(old["spec"])

    def validate(self, obj: Json) -> Errors:
        return self._validate_claim(obj, NEW_CLAIM)

    def _validate_claim(self, obj: Json, rules: ClaimRules) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_claim_spec(obj["spec"], root("spec"), rules)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self._validate_claim(obj, _rules_for(old["spec"]))
        yield from validate_claim_update(obj, old)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if BETA_STORAGE_CLASS in annotations_of(obj):
            yield f"metadata.annotations[{BETA_STORAGE_CLASS}]: {BETA_STORAGE_CLASS_DEPRECATED}"
        yield from claim_warnings(obj["spec"], root("spec"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return self.warnings_on_create(obj)


class PersistentVolumeClaimStatusStrategy(PersistentVolumeClaimStrategy):
    reset_fields = ("spec",)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not resource_version_of(obj):
            yield required(root("resourceVersion"))
        if not items(obj, "spec", "accessModes"):
            yield required(root("Spec", "accessModes"))
        for name, amount in sorted(part(obj, "status", "capacity").items()):
            yield from validate_basic_amount(amount, root("status", "capacity").key(name))
        yield from _validate_resizes(part(obj, "status", "allocatedResourceStatuses"))
        yield from _validate_allocated(part(obj, "status", "allocatedResources"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return ()


def _rules_for(old: Json) -> ClaimRules:
    sources = (old.get("dataSource"), old.get("dataSourceRef"))
    return ClaimRules(
        allow_invalid_selector_values=any(validate_label_selector(old.get("selector"), root("selector"))),
        allow_invalid_data_source_group=any((each or {}).get("apiGroup") is not None for each in sources),
    )


def _validate_resizes(statuses: Json) -> Errors:
    path = root("status", "allocatedResourceStatuses")
    for name, status in sorted(statuses.items()):
        yield from _validate_allocated_name(name, path)
        if status not in _RESIZE_STATUSES:
            yield not_supported(path, name, _RESIZE_STATUSES)


def _validate_allocated(amounts: Json) -> Errors:
    path = root("status", "allocatedResources")
    for name, amount in sorted(amounts.items()):
        errors = list(_validate_allocated_name(name, path)) or list(validate_basic_amount(amount, path.key(name)))
        yield from errors or validate_resource_amount("storage", amount, path.key(name))


def _validate_allocated_name(name: str, path: Path) -> Errors:
    errors = list(qualified_name(name, path))
    yield from errors
    if not errors and is_native(name) and name != "storage":
        yield not_supported(path, name, ("storage",))
