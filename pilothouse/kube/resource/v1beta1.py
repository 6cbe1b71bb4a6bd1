"""resource.k8s.io/v1beta1: requests have the fields of `exactly` themselves, and devices have theirs in `basic`."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.kube.api_lifecycle import in_storage_version
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.requests import default_request
from pilothouse.kube.resource.resource_claim_templates import RESOURCE_CLAIM_TEMPLATES
from pilothouse.kube.resource.resource_claims import RESOURCE_CLAIMS, default_status
from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES
from pilothouse.kube.resource.taints import default_taints, default_tolerations
from pilothouse.kube.served import VersionConversion, fitted
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, items, part, text

V1BETA1 = GroupVersion(GROUP, "v1beta1")

_OF_EVERY_REQUEST = ("name", "firstAvailable")
_ZERO_MEANS_UNSET = ("deviceClassName", "allocationMode", "count")


@dataclass(frozen=True, slots=True)
class _Change:
    """In-place conversion of a spec; `where` is the path of the spec."""

    where: tuple[str, ...]
    to_stored: Callable[[Json], None]
    from_stored: Callable[[Json], None]


def _requests_to_stored(spec: Json) -> None:
    for request in items(spec, "devices", "requests"):
        exactly = {field: request.pop(field) for field in list(request) if field not in _OF_EVERY_REQUEST}
        if any(value or field not in _ZERO_MEANS_UNSET for field, value in exactly.items()):
            request["exactly"] = exactly


def _requests_from_stored(spec: Json) -> None:
    for request in items(spec, "devices", "requests"):
        request.update(request.pop("exactly", None) or {})


def _devices_to_stored(spec: Json) -> None:
    for field in ("nodeName", "allNodes"):
        if not spec.get(field):
            spec.pop(field, None)
    for device in items(spec, "devices"):
        device.update(device.pop("basic", None) or {})


def _devices_from_stored(spec: Json) -> None:
    for device in items(spec, "devices"):
        device["basic"] = {field: device.pop(field) for field in list(device) if field != "name"}


def _default_requests(spec: Json) -> None:
    """Default requests. A request without a class has alternatives, without mode and count."""
    for request in items(spec, "devices", "requests"):
        if text(request, "deviceClassName"):
            default_request(request)
        default_tolerations(request)
        for alternative in items(request, "firstAvailable"):
            default_request(alternative)


def _default_claim(obj: Json) -> None:
    _default_requests(part(obj, "spec"))
    default_status(obj)


def _default_template(obj: Json) -> None:
    _default_requests(part(obj, "spec", "spec"))


def _default_slice(obj: Json) -> None:
    for device in items(obj, "spec", "devices"):
        default_taints(part(device, "basic"))


def _conversion(resource: Resource, change: _Change, default: Callable[[Json], None]) -> VersionConversion:
    kind = V1BETA1.kind(resource.names.kind)
    return VersionConversion(
        kind=kind,
        to_stored=lambda obj: _converted(obj, in_storage_version(resource).kind, change.where, change.to_stored),
        from_stored=lambda obj: _converted(obj, kind, change.where, change.from_stored),
        default=default,
    )


def _converted(obj: Json, to: GroupVersionKind, where: tuple[str, ...], change: Callable[[Json], None]) -> Json:
    out = {**obj, "apiVersion": to.api_version, "spec": deepcopy(obj.get("spec") or {})}
    change(part(out, *where))
    return fitted(to, out)


_CLAIM = _Change(("spec",), _requests_to_stored, _requests_from_stored)
_TEMPLATE = _Change(("spec", "spec"), _requests_to_stored, _requests_from_stored)
_SLICE = _Change(("spec",), _devices_to_stored, _devices_from_stored)

V1BETA1_CONVERSIONS = {
    "resourceclaims": _conversion(RESOURCE_CLAIMS, _CLAIM, _default_claim),
    "resourceclaimtemplates": _conversion(RESOURCE_CLAIM_TEMPLATES, _TEMPLATE, _default_template),
    "resourceslices": _conversion(RESOURCE_SLICES, _SLICE, _default_slice),
}
"""By plural; device classes are the same in both versions."""
