"""StorageObjectInUseProtection: adds protection finalizers to volumes, claims and volume attributes classes."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kinds.finalizers import add_finalizer
from pilothouse.machinery.names import GroupResource

_FINALIZERS = {
    GroupResource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    GroupResource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    GroupResource("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Handler):
    name = "StorageObjectInUseProtection"
    resources = frozenset(_FINALIZERS)
    operations = (Operation.CREATE,)

    async def admit(self, attributes: Attributes) -> None:
        finalizer = _FINALIZERS.get(attributes.resource.group_resource)
        if finalizer is None or attributes.obj is None or attributes.subresource:
            return
        add_finalizer(attributes.obj, finalizer)
