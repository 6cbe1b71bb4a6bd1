"""DefaultStorageClass and DefaultIngressClass: set the default class of claims and ingresses without a class."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.kube.storage.storageclasses import is_default_class
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of, part

ListObjects: TypeAlias = Callable[[], Awaitable[list[Json]]]

_CLAIMS = GroupResource("", "persistentvolumeclaims")
_INGRESSES = GroupResource("networking.k8s.io", "ingresses")
_BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"


class _DefaultClass(Handler):
    operations = (Operation.CREATE,)

    def __init__(self, list_classes: ListObjects) -> None:
        self._list_classes = list_classes


class DefaultStorageClass(_DefaultClass):
    name = "DefaultStorageClass"
    resources = (_CLAIMS,)

    async def admit(self, attributes: Attributes) -> None:
        claim = attributes.obj
        if claim is None or attributes.resource.group_resource != _CLAIMS or attributes.subresource:
            return
        if _BETA_STORAGE_CLASS in annotations_of(claim) or part(claim, "spec").get("storageClassName") is not None:
            return
        if chosen := _newest(filter(is_default_class, await self._list_classes())):
            claim.setdefault("spec", {})["storageClassName"] = chosen


class DefaultIngressClass(_DefaultClass):
    name = "DefaultIngressClass"
    resources = (_INGRESSES,)

    async def admit(self, attributes: Attributes) -> None:
        ingress = attributes.obj
        if ingress is None or attributes.resource.group_resource != _INGRESSES or attributes.subresource:
            return
        if part(ingress, "spec").get("ingressClassName") is not None:
            return
        if _INGRESS_CLASS_ANNOTATION in annotations_of(ingress):
            return
        classes = (
            item for item in await self._list_classes() if annotations_of(item).get(_DEFAULT_INGRESS_CLASS) == "true"
        )
        if chosen := _newest(classes):
            ingress.setdefault("spec", {})["ingressClassName"] = chosen


def _newest(classes: Iterable[Json]) -> str:
    """Return the name of the newest class, or an empty string. Equal timestamps: the first name wins."""
    by_name = sorted(classes, key=name_of)
    newest = max(by_name, key=lambda item: str(metadata(item).get("creationTimestamp") or ""), default=None)
    return name_of(newest) if newest else ""
