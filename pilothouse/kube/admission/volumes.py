"""Admission plugins for volumes and claims.

PersistentVolumeClaimResize: only bound claims grow, and only if their storage class allows expansion.
StorageObjectInUseProtection: adds protection finalizers to volumes, claims and volume attributes classes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kinds.deletion import add_finalizer
from pilothouse.kube.core.persistentvolumes.resource import storage_class
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.quantity import Quantity, parse_quantity

GetStorageClass: TypeAlias = Callable[[str], Awaitable[Json | None]]
_CLAIMS = GroupResource("", "persistentvolumeclaims")

_FINALIZERS = {
    GroupResource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    GroupResource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    GroupResource("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class PersistentVolumeClaimResize(Handler):
    name = "PersistentVolumeClaimResize"
    resources = (_CLAIMS,)
    operations = (Operation.UPDATE,)

    def __init__(self, get_class: GetStorageClass) -> None:
        self._get_class = get_class

    async def validate(self, attributes: Attributes) -> None:
        claim, old = attributes.obj, attributes.old
        if claim is None or old is None or attributes.resource.group_resource != _CLAIMS or attributes.subresource:
            return
        if _size(claim) <= _size(old):
            return
        if text(old, "status", "phase") != "Bound":
            raise refused(attributes, "Only bound persistent volume claims can be expanded")
        if not await self._may_grow(claim, old):
            reason = (
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize"
            )
            raise refused(attributes, reason)

    async def _may_grow(self, claim: Json, old: Json) -> bool:
        name = storage_class(claim)
        if not name or name != storage_class(old):
            return False
        result = await self._get_class(name)
        return bool(result and result.get("allowVolumeExpansion"))


def _size(claim: Json) -> Quantity:
    return parse_quantity(part(claim, "spec", "resources", "requests").get("storage") or "0")


class StorageObjectInUseProtection(Handler):
    name = "StorageObjectInUseProtection"
    resources = frozenset(_FINALIZERS)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        finalizer = _FINALIZERS.get(attributes.resource.group_resource)
        if finalizer is None or attributes.obj is None or attributes.subresource:
            return
        add_finalizer(attributes.obj, finalizer)
