"""Validation of managedFields and owner references after mutating admission."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.registry.metadata import dedup_owner_references
from pilothouse.machinery.apply.managed import InvalidManagedFields, decode_entries, set_entries
from pilothouse.machinery.objects import Json, metadata

_WARNING = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: {why}"
)


async def admit(chain: AdmissionChain, attributes: Attributes) -> None:
    """Run mutating admission, and restore managedFields if admission made them invalid."""
    obj = attributes.obj
    assert obj is not None, "only writes of objects are admitted here"
    before = metadata(obj).get("managedFields")
    await chain.admit(attributes)
    await attributes.weight.run(_repair_metadata, attributes, obj, before)


def _repair_metadata(attributes: Attributes, obj: Json, before: Any) -> None:
    after = metadata(obj).get("managedFields")
    if after is not before:
        try:
            decode_entries(after)
        except InvalidManagedFields as error:
            set_entries(obj, before or [])
            attributes.warn(_WARNING.format(why=error))
    dedup_owner_references(obj, attributes.warn, after_admission=True)
