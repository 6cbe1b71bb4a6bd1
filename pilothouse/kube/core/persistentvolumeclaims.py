"""PersistentVolumeClaims: strategies of claim and status, rules for updates, and columns."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.persistentvolumes.resource import (
    BETA_STORAGE_CLASS,
    BETA_STORAGE_CLASS_DEPRECATED,
    access_modes,
    attributes_class,
    phase,
    storage_class,
    volume_mode,
)
from pilothouse.kube.core.persistentvolumes.validation import validate_basic_amount
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.defaults.volumes import default_claim_spec
from pilothouse.kube.core.pods.internal_form import difference, internal_form
from pilothouse.kube.core.pods.warnings.volumes import claim_warnings
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource, gated
from pilothouse.kube.validation.fields import qualified_name
from pilothouse.kube.validation.resource_names import is_native, validate_resource_amount
from pilothouse.kube.validation.volume_claims import NEW_CLAIM, ClaimRules, validate_claim_spec
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required, root
from pilothouse.machinery.objects import Json, annotations_of, items, part, resource_version_of, text
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal, validate_immutable_field
from pilothouse.machinery.validation.labels import validate_label_selector

_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeClaimStrategy(SeparateStatusStrategy):
    repeats_warnings_on_update = True

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
        super().prepare_for_update(obj, old)
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


class PersistentVolumeClaimStatusStrategy(StatusSubresource, PersistentVolumeClaimStrategy):
    gated_status_fields = (gated("CSIVolumeHealth", "status.healthStatus"),)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        if not resource_version_of(obj):
            yield required(root("resourceVersion"))
        if not items(obj, "spec", "accessModes"):
            yield required(root("Spec", "accessModes"))
        for name, amount in sorted(part(obj, "status", "capacity").items()):
            yield from validate_basic_amount(amount, root("status", "capacity").key(name))
        path = root("status", "allocatedResourceStatuses")
        for name, status in sorted(part(obj, "status", "allocatedResourceStatuses").items()):
            yield from _validate_allocated_name(name, path)
            if status not in _RESIZE_STATUSES:
                yield not_supported(path, name, _RESIZE_STATUSES)
        path = root("status", "allocatedResources")
        for name, amount in sorted(part(obj, "status", "allocatedResources").items()):
            errors = list(_validate_allocated_name(name, path)) or list(validate_basic_amount(amount, path.key(name)))
            yield from errors or validate_resource_amount("storage", amount, path.key(name))


def _rules_for(old: Json) -> ClaimRules:
    sources = (old.get("dataSource"), old.get("dataSourceRef"))
    return ClaimRules(
        allow_invalid_selector_values=any(validate_label_selector(old.get("selector"), root("selector"))),
        allow_invalid_data_source_group=any((source or {}).get("apiGroup") is not None for source in sources),
    )


def _validate_allocated_name(name: str, path: Path) -> Errors:
    errors = list(qualified_name(name, path))
    yield from errors
    if not errors and is_native(name) and name != "storage":
        yield not_supported(path, name, ("storage",))


_SHARED = ("apiGroup", "kind", "name")
_ALWAYS_ALLOWED = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def prepare_data_sources(spec: Json, old: Json | None) -> None:
    before = old or {}
    is_foreign = bool(text(spec, "dataSourceRef", "namespace"))
    if is_foreign and before.get("dataSourceRef") is None and not enabled("CrossNamespaceVolumeDataSource"):
        spec.pop("dataSourceRef")
    if before.get("dataSource") is None and before.get("dataSourceRef") is None:
        # The older field has always ignored kinds other than claims and snapshots.
        source = spec.get("dataSource")
        if source is not None and spec.get("dataSourceRef") is None:
            kind = (source.get("apiGroup") or "", source.get("kind") or "")
            if kind not in _ALWAYS_ALLOWED:
                spec.pop("dataSource")
    normalize_data_sources(spec)


def normalize_data_sources(spec: Json) -> None:
    """Copy dataSource to dataSourceRef or vice versa if only one of the fields is set."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _shared(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _shared(reference)


def _shared(reference: Json) -> Json:
    return {name: reference[name] for name in _SHARED if name in reference}


_SPEC = "PersistentVolumeClaimSpec"


def validate_claim_update(obj: Json, old: Json) -> Errors:
    """Validate immutable fields. Metadata and the rules for new claims are validated elsewhere."""
    spec, before = deepcopy(obj["spec"]), deepcopy(old["spec"])
    if not before.get("volumeName"):
        _copy(spec, before, "volumeName")
    yield from _settle_storage_class(obj, old, spec)
    if text(obj, "status", "phase") == "Bound":
        requests = part(spec, "resources").get("requests")
        if requests is not None:
            requests["storage"] = part(before, "resources", "requests").get("storage") or "0"
        _copy(before, spec, "volumeAttributesClassName")
    if not semantically_equal(spec, before):
        diff = difference(internal_form(_SPEC, before), internal_form(_SPEC, spec))
        reason = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden(root("spec"), f"{reason}\n{diff}")
    size = _storage(part(obj, "spec", "resources", "requests"))
    # A claim shrinks only to undo a failed expansion, and never below status.capacity.
    is_shrunk = size < _storage(part(old, "spec", "resources", "requests"))
    if is_shrunk and size <= _storage(part(old, "status", "capacity")):
        path = root("spec", "resources", "requests", "storage")
        yield forbidden(path, "field can not be less than status.capacity")
    modes = obj["spec"].get("volumeMode"), old["spec"].get("volumeMode")
    yield from validate_immutable_field(*modes, root("volumeMode"))
    name = obj["spec"].get("volumeAttributesClassName")
    is_removed = not name and name != old["spec"].get("volumeAttributesClassName")
    if is_removed and part(old, "status").get("currentVolumeAttributesClassName") is not None:
        change = "nil" if name is None else "empty string"
        reason = f"update to {change} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden(root("spec", "volumeAttributesClassName"), reason)


def _copy(source: Json, target: Json, field: str) -> None:
    target.pop(field, None)
    if field in source:
        target[field] = source[field]


def _settle_storage_class(obj: Json, old: Json, spec: Json) -> Errors:
    """Accept a class for a claim without class, and a move of the class from the annotation to the field."""
    named, requested = old["spec"].get("storageClassName"), obj["spec"].get("storageClassName")
    before, after = (annotations_of(claim).get(BETA_STORAGE_CLASS) for claim in (old, obj))
    if before is not None and named is None and requested == before and after in (None, before):
        spec.pop("storageClassName")
        return
    if (before or "") != (after or ""):
        yield invalid(root("metadata", "annotations", BETA_STORAGE_CLASS), after or "", FIELD_IMMUTABLE)
    if requested is not None and named is None and before in (None, requested):
        spec.pop("storageClassName")


def _storage(amounts: Json) -> Quantity:
    return parse_quantity(amounts["storage"]) if "storage" in amounts else ZERO


_PRINTED_SPEC = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"
_STATUS = "io.k8s.api.core.v1.PersistentVolumeClaimStatus"


def _capacity(obj: Json) -> str:
    """Return the capacity for printing, empty for an unbound claim."""
    return (text(obj, "status", "capacity", "storage") or "0") if text(obj, "spec", "volumeName") else ""


def _access_modes(obj: Json) -> str:
    return access_modes(items(obj, "status", "accessModes")) if text(obj, "spec", "volumeName") else ""


PERSISTENT_VOLUME_CLAIMS = Resource(
    names=Names("persistentvolumeclaims", kind="PersistentVolumeClaim", short=["pvc"]),
    strategy=PersistentVolumeClaimStrategy(),
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("Status", phase, documented=(_STATUS, "phase")),
        Column("Volume", lambda obj: text(obj, "spec", "volumeName"), documented=(_PRINTED_SPEC, "volumeName")),
        Column("Capacity", _capacity, documented=(_STATUS, "capacity")),
        Column("Access Modes", _access_modes, documented=(_STATUS, "accessModes")),
        Column("StorageClass", storage_class, description="StorageClass of the pvc"),
        Column("VolumeAttributesClass", attributes_class, description="VolumeAttributesClass of the pvc"),
        AGE,
        Column("VolumeMode", volume_mode, priority=1, documented=(_PRINTED_SPEC, "volumeMode")),
    ],
)


def persistent_volume_claim_storages(registries: Registries) -> list[ServedResource]:
    return with_status(registries.open(PERSISTENT_VOLUME_CLAIMS), PersistentVolumeClaimStatusStrategy())
