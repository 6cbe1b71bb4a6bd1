"""ResourceClaims: immutable requests, with allocations in the status."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube.resource.allocations import allocated_devices, device_id, validate_claim_status
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.gated_fields import CLAIM_SPEC_FIELDS, CLAIM_STATUS_FIELDS
from pilothouse.kube.resource.printed_claims import printed_claim_spec
from pilothouse.kube.resource.requests import RequestNames, default_requests, validate_claim_spec
from pilothouse.kube.resource.taints import default_tolerations
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource, drop_disabled, zero_value
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, part
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

_KIND = GroupVersionKind(GROUP, "v1", "ResourceClaim")


def default_status(obj: Json) -> None:
    for result in items(obj, "status", "allocation", "devices", "results"):
        default_tolerations(result)


class ResourceClaimStrategy(SeparateStatusStrategy):
    def default(self, obj: Json) -> None:
        default_requests(part(obj, "spec"))
        default_status(obj)

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = zero_value(_KIND, "status")
        drop_disabled(part(obj, "spec"), None, CLAIM_SPEC_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled(part(obj, "spec"), part(old, "spec"), CLAIM_SPEC_FIELDS)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_claim_spec(part(obj, "spec"), root("spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from self.validate_metadata_update(obj, old)
        if not semantically_equal(obj.get("spec"), old.get("spec")):
            yield invalid(root("spec"), printed_claim_spec(obj.get("spec")), FIELD_IMMUTABLE)


class ResourceClaimStatusStrategy(StatusSubresource, ResourceClaimStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        super().prepare_for_update(obj, old)
        drop_disabled(part(obj, "status"), part(old, "status"), CLAIM_STATUS_FIELDS)
        # Drop the status of deallocated devices on behalf of clients.
        status = part(obj, "status")
        gone = allocated_devices(part(old, "status")) - allocated_devices(status)
        kept = [device for device in items(status, "devices") if device_id(device) not in gone]
        if kept:
            status["devices"] = kept
        else:
            status.pop("devices", None)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_claim_status(
            part(obj, "status"),
            part(old, "status"),
            root("status"),
            names=RequestNames(part(obj, "spec")),
            deleted=is_deleting(obj),
        )


def _state(obj: Json) -> str:
    deleted, status = is_deleting(obj), part(obj, "status")
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", *(["reserved"] if items(status, "reservedFor") else [])]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS = Resource(
    names=Names("resourceclaims", kind="ResourceClaim"),
    strategy=ResourceClaimStrategy(),
    group=GROUP,
    status_has_tables=False,
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("State", _state, description="A summary of the current state (allocated, pending, reserved, etc.)."),
        AGE,
    ],
)
