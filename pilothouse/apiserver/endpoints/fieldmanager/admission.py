"""Mutating admission may change managedFields too, but not into something that makes no sense."""

from __future__ import annotations

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.machinery.apply.managed import InvalidManagedFields, decode_entries, set_entries
from pilothouse.machinery.objects import metadata

_WARNING = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: {why}"
)


async def admit(chain: AdmissionChain, attributes: Attributes) -> None:
    """Lets the chain admit the object, and takes back what it did to managedFields if nobody can read them then."""
    obj = attributes.obj
    assert obj is not None, "only writes of objects are admitted here"
    before = metadata(obj).get("managedFields")
    await chain.admit(attributes)
    after = metadata(obj).get("managedFields")
    if after is before:
        return
    try:
        decode_entries(after)
    except InvalidManagedFields as error:
        set_entries(obj, before or [])
        attributes.warn(_WARNING.format(why=error))
