"""Quota evaluator of persistent volume claims: count and storage, in total and per storage class."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.kube.admission.quota.evaluators import ONE, in_values
from pilothouse.kube.core.persistentvolumes.resource import storage_class
from pilothouse.kube.validation.quota_scopes import VOLUME_ATTRIBUTES_CLASS
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.quantity import Quantity, parse_quantity

_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_SUFFIXES = tuple(_OF_CLASS + name for name in _NAMES)


class ClaimEvaluator:
    counts_only = False

    def handles(self, attributes: Attributes) -> bool:
        if attributes.subresource not in ("", "status"):
            return False
        return attributes.operation in (Operation.CREATE, Operation.UPDATE)

    def matching(self, names: Iterable[str]) -> list[str]:
        own = ("count/persistentvolumeclaims", *_NAMES)
        return sorted(name for name in names if name in own or name.endswith(_SUFFIXES))

    def in_scope(self, scope: Json, obj: Json) -> bool:
        if scope.get("scopeName") != VOLUME_ATTRIBUTES_CLASS:
            return False
        names = _attributes_classes(obj)
        return any(in_values(scope, name) for name in names) if names else in_values(scope, None)

    def missing(self, names: Iterable[str], obj: Json) -> str:
        return ""

    def usage(self, obj: Json) -> ResourceList:
        used: ResourceList = {"count/persistentvolumeclaims": ONE, "persistentvolumeclaims": ONE}
        if (size := _storage(obj)) is not None:
            used["requests.storage"] = size
        if name := storage_class(obj):
            used |= {f"{name}{_OF_CLASS}{item}": used[item] for item in _NAMES if item in used}
        return used


def _attributes_classes(claim: Json) -> set[str]:
    """Return the current, desired and pending volume attributes classes."""
    return {
        text(claim, "spec", "volumeAttributesClassName"),
        text(claim, "status", "currentVolumeAttributesClassName"),
        text(claim, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    } - {""}


def _storage(claim: Json) -> Quantity | None:
    """Return the requested bytes, or the allocated bytes of a pending expansion."""
    asked = part(claim, "spec", "resources", "requests").get("storage")
    if asked is None:
        return None
    taken = part(claim, "status", "allocatedResources").get("storage") or "0"
    return max(parse_quantity(asked), parse_quantity(taken)).round_up(0)
