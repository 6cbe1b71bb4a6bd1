"""Which object a write is meant for, checked in the words of upstream's storage."""

from __future__ import annotations

from pilothouse.apiserver.registry.options import Preconditions
from pilothouse.machinery.objects import Json, resource_version_of, uid_of


def failed_precondition(obj: Json, conditions: Preconditions) -> str:
    """Empty when the object is the one that is meant."""
    for what, wanted, found in (
        ("UID", conditions.uid, uid_of(obj)),
        ("ResourceVersion", conditions.resource_version, resource_version_of(obj)),
    ):
        if wanted is not None and wanted != found:
            return f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return ""


def invalid_object(key: str, why: str) -> str:
    """Return the message of a failed precondition as upstream's storage writes it."""
    return f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
