"""What the status of a claim must look like."""

from __future__ import annotations

from pilothouse.kube.core.persistentvolumes.validation import validate_basic_amount
from pilothouse.kube.validation.fields import qualified_name
from pilothouse.kube.validation.quantities import validate_resource_amount
from pilothouse.kube.validation.resource_names import is_native
from pilothouse.machinery.field import Errors, Path, not_supported, required, root
from pilothouse.machinery.nested_fields import items, part
from pilothouse.machinery.objects import Json, resource_version_of

_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def validate_claim_status(obj: Json) -> Errors:
    if not resource_version_of(obj):
        yield required(root("resourceVersion"))
    if not items(obj, "spec", "accessModes"):
        yield required(root("Spec", "accessModes"))
    for name, amount in sorted(part(obj, "status", "capacity").items()):
        yield from validate_basic_amount(amount, root("status", "capacity").key(name))
    yield from _validate_resizes(part(obj, "status", "allocatedResourceStatuses"))
    yield from _validate_allocated(part(obj, "status", "allocatedResources"))


def _validate_resizes(statuses: Json) -> Errors:
    path = root("status", "allocatedResourceStatuses")
    for name, status in sorted(statuses.items()):
        yield from _validate_key(name, path)
        if status not in _RESIZE_STATUSES:
            yield not_supported(path, name, _RESIZE_STATUSES)


def _validate_allocated(amounts: Json) -> Errors:
    path = root("status", "allocatedResources")
    for name, amount in sorted(amounts.items()):
        errors = list(_validate_key(name, path)) or list(validate_basic_amount(amount, path.key(name)))
        yield from errors or validate_resource_amount("storage", amount, path.key(name))


def _validate_key(name: str, path: Path) -> Errors:
    errors = list(qualified_name(name, path))
    yield from errors
    if not errors and is_native(name) and name != "storage":
        yield not_supported(path, name, ("storage",))
