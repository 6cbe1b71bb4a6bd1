"""Quota evaluator of resource claims: devices per device class, also by extended resource name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.controllers.resourcequota.evaluator import ExtendedResources
from pilothouse.kinds.resource_lists import ResourceList, added
from pilothouse.kube.admission.quota.evaluators import ONE
from pilothouse.machinery.objects import Json, annotations_of, items, text
from pilothouse.machinery.quantity import Quantity

COUNT = "count/resourceclaims.resource.k8s.io"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"
_REQUESTS = "requests."
_ALL_DEVICES = 32
"""Maximum devices of a request with allocation mode All."""
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class DeviceClaimEvaluator:
    counts_only = False

    def __init__(self, extended_resources: ExtendedResources) -> None:
        self._extended_resources = extended_resources

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.subresource and attributes.operation in (Operation.CREATE, Operation.UPDATE)

    def matching(self, names: Iterable[str]) -> list[str]:
        extended = self._extended_resources()
        called = {f"{_REQUESTS}{name}" for name in extended.values()} | {_IMPLICIT + item for item in extended}
        return sorted(name for name in names if name == COUNT or name.endswith(_OF_DEVICE_CLASS) or name in called)

    def in_scope(self, scope: Json, obj: Json) -> bool:
        return False

    def missing(self, names: Iterable[str], obj: Json) -> str:
        return ""

    def usage(self, obj: Json) -> ResourceList:
        devices: dict[str, Quantity] = {}
        for request in items(obj, "spec", "devices", "requests"):
            devices = added(devices, _devices(request))
        used: ResourceList = {COUNT: ONE, **{f"{name}{_OF_DEVICE_CLASS}": number for name, number in devices.items()}}
        if annotations_of(obj).get(_EXTENDED_RESOURCE_CLAIM) == "true":
            return used  # the scheduler created the claim for a pod, which is charged
        return used | _by_other_names(devices, self._extended_resources())


def _devices(request: Json) -> dict[str, Quantity]:
    """Return devices by class. For prioritized alternatives, each class counts its maximum."""
    if alternatives := items(request, "firstAvailable"):
        most: dict[str, Quantity] = {}
        for alternative in alternatives:
            name = text(alternative, "deviceClassName")
            most[name] = max(_number(alternative), most.get(name, Quantity(0)))
        return most
    exactly = request.get("exactly")
    return {text(exactly, "deviceClassName"): _number(exactly)} if exactly else {}


def _number(request: Json) -> Quantity:
    mode = text(request, "allocationMode")
    return Quantity({"ExactCount": request.get("count") or 0, "All": _ALL_DEVICES}.get(mode, 0))


def _by_other_names(devices: Mapping[str, Quantity], extended: Mapping[str, str]) -> ResourceList:
    used: ResourceList = {f"{_IMPLICIT}{name}": number for name, number in devices.items() if number}
    used |= {f"{_REQUESTS}{extended[name]}": number for name, number in devices.items() if number and name in extended}
    return used
