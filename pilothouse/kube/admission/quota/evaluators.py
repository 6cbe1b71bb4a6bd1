"""Quota evaluators: usage of an object by resource name. Other resources are counted.

Claims: count and storage, in total and per storage class. Resource claims: devices per device class, also by extended
resource name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.controllers.resourcequota.evaluator import ExtendedResources, QuotaEvaluator
from pilothouse.kinds.resources import ResourceList, added
from pilothouse.kube.core.persistentvolumes.resource import storage_class
from pilothouse.kube.validation.quota_scopes import VOLUME_ATTRIBUTES_CLASS
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, annotations_of, items, part, text
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity

ONE = Quantity(1)

_NAMES = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_SUFFIXES = tuple(_OF_CLASS + name for name in _NAMES)

COUNT = "count/resourceclaims.resource.k8s.io"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"
_REQUESTS = "requests."
_ALL_DEVICES = 32
"""Maximum devices of a request with allocation mode All."""
_EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class AdmissionEvaluator(QuotaEvaluator, Protocol):
    """A quota evaluator that also checks writes."""

    def handles(self, attributes: Attributes) -> bool:
        """Report whether the write can change usage."""

    def missing(self, names: Iterable[str], obj: Json) -> str:
        """Return the fields required for the resource names and missing in the object, as a phrase."""


def count_name(resource: GroupResource) -> str:
    return f"count/{resource.resource}.{resource.group}" if resource.group else f"count/{resource.resource}"


def in_values(scope: Json, value: str | None) -> bool:
    """Match a value or its absence against a requirement of a scope selector."""
    operator, values = scope.get("operator"), items(scope, "values")
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    return (value is not None) == (operator == "Exists")


class _NumberEvaluator:
    """Counts objects regardless of their contents. No scope applies."""

    names: frozenset[str]
    """Resource names to count under."""

    def matching(self, names: Iterable[str]) -> list[str]:
        return sorted(self.names.intersection(names))

    def in_scope(self, scope: Json, obj: Json) -> bool:
        return False

    def missing(self, names: Iterable[str], obj: Json) -> str:
        return ""


class CountEvaluator(_NumberEvaluator):
    """Counts objects, for some resources also under an older name."""

    counts_only = True

    def __init__(self, resource: GroupResource) -> None:
        aliases = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}
        alias = {resource.resource} if not resource.group and resource.resource in aliases else set()
        self.names = frozenset({count_name(resource)} | alias)

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation is Operation.CREATE and not attributes.subresource

    def usage(self, obj: Json) -> ResourceList:
        return dict.fromkeys(self.names, ONE)


class ServiceEvaluator(_NumberEvaluator):
    """Counts services, their node ports and load balancers."""

    counts_only = False

    names = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in (Operation.CREATE, Operation.UPDATE) and not attributes.subresource

    def usage(self, obj: Json) -> ResourceList:
        kind = text(obj, "spec", "type")
        return {
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": ONE if kind == "LoadBalancer" else ZERO,
            "services.nodeports": Quantity(_node_ports(part(obj, "spec"), kind)),
        }


def _node_ports(spec: Json, kind: str) -> int:
    """Return the number of node ports, allocated or pending."""
    ports = items(spec, "ports")
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return sum(1 for port in ports if port.get("nodePort"))
    return len(ports) if kind in ("NodePort", "LoadBalancer") else 0


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
        names = {
            text(obj, "spec", "volumeAttributesClassName"),
            text(obj, "status", "currentVolumeAttributesClassName"),
            text(obj, "status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
        } - {""}
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


def _storage(claim: Json) -> Quantity | None:
    """Return the requested bytes, or the allocated bytes of a pending expansion."""
    requested = part(claim, "spec", "resources", "requests").get("storage")
    if requested is None:
        return None
    allocated = part(claim, "status", "allocatedResources").get("storage") or "0"
    return max(parse_quantity(requested), parse_quantity(allocated)).round_up(0)


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
