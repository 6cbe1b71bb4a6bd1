"""What the spec of a persistent volume must look like, in a volume or inside a volume attachment."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from pilothouse.kube.core.persistentvolumes.sources import validate_sources
from pilothouse.kube.validation.fields import dns_subdomain, one_of, positive_quantity
from pilothouse.kube.validation.node_selectors import validate_node_selector
from pilothouse.kube.validation.volume_claims import ACCESS_MODES, VOLUME_MODES
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.nested_fields import items, text
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")

_NOT_INLINE = "may not be specified in the context of inline volumes"


def validate_volume_spec(spec: Json, volume_name: str, path: Path, *, allow_invalid_values: bool = False) -> Errors:
    """`allow_invalid_values` is for a node affinity that was stored with them."""
    yield from _validate_access_modes(items(spec, "accessModes"), path.child("accessModes"))
    yield from _validate_capacity(spec.get("capacity"), path.child("capacity"))
    if policy := text(spec, "persistentVolumeReclaimPolicy"):
        yield from one_of(policy, path.child("persistentVolumeReclaimPolicy"), RECLAIM_POLICIES)
    if spec.get("nodeAffinity") is not None:
        at = path.child("nodeAffinity")
        yield from _validate_affinity(spec["nodeAffinity"], at, allow_invalid_values=allow_invalid_values)
    yield from validate_sources(spec, volume_name, path)
    yield from _validate_recycling(spec, path)
    if spec.get("storageClassName"):
        yield from dns_subdomain(spec["storageClassName"], path.child("storageClassName"))
    if spec.get("volumeMode") is not None:
        yield from one_of(spec["volumeMode"], path.child("volumeMode"), VOLUME_MODES)
    yield from _validate_attributes_class(spec, path)


def validate_inline_spec(spec: Json, path: Path) -> Errors:
    """The spec of a volume that exists only as long as its attachment."""
    if spec.get("claimRef") is not None:
        yield forbidden(path.child("claimRef"), _NOT_INLINE)
    if spec.get("capacity"):
        yield forbidden(path.child("capacity"), _NOT_INLINE)
    if spec.get("csi") is None:
        yield required(path.child("csi"), "has to be specified in the context of inline volumes")
    yield from _validate_access_modes(items(spec, "accessModes"), path.child("accessModes"))
    if text(spec, "persistentVolumeReclaimPolicy") not in ("", "Retain"):
        why = "may only be Retain in the context of inline volumes"
        yield forbidden(path.child("persistentVolumeReclaimPolicy"), why)
    if spec.get("nodeAffinity") is not None:
        yield forbidden(path.child("nodeAffinity"), _NOT_INLINE)
    yield from validate_sources(spec, "", path)
    yield from _validate_recycling(spec, path)
    if spec.get("storageClassName"):
        yield forbidden(path.child("storageClassName"), _NOT_INLINE)
    if spec.get("volumeMode") not in (None, "Filesystem"):
        why = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        yield forbidden(path.child("volumeMode"), why)


def _validate_access_modes(modes: Sequence[str], path: Path) -> Errors:
    if not modes:
        yield required(path)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    for mode in modes:
        if mode not in known:
            yield not_supported(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_capacity(capacity: Json | None, path: Path) -> Errors:
    if not capacity:
        yield required(path)
    if capacity is None or capacity.keys() != {"storage"}:
        yield not_supported(path, capacity if capacity is None else dict(sorted(capacity.items())), ("storage",))
    for name, amount in sorted((capacity or {}).items()):
        yield from validate_basic_amount(amount, path.key(name))
        yield from positive_quantity(parse_quantity(amount), path.key(name))


def validate_basic_amount(amount: str, path: Path) -> Errors:
    value = parse_quantity(amount).value()
    if value < 0:
        yield invalid(path, value, "must be a valid resource quantity")


def _validate_affinity(affinity: Json, path: Path, *, allow_invalid_values: bool) -> Errors:
    if affinity.get("required") is None:
        yield required(path.child("required"), "must specify required node constraints")
    else:
        at = path.child("required")
        yield from validate_node_selector(affinity["required"], at, allow_invalid_values=allow_invalid_values)


def _validate_recycling(spec: Json, path: Path) -> Errors:
    """Recycling the root of a host would erase the host."""
    root_path = posixpath.normpath(text(spec, "hostPath", "path") or ".")
    if root_path in ("/", "//") and text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(path.child("persistentVolumeReclaimPolicy"), why)


def _validate_attributes_class(spec: Json, path: Path) -> Errors:
    name, at = spec.get("volumeAttributesClassName"), path.child("volumeAttributesClassName")
    if name is None:
        return
    if not name:
        yield required(at, "an empty string is disallowed")
    else:
        yield from dns_subdomain(name, at)
    if spec.get("csi") is None:
        yield required(path.child("csi"), "has to be specified when using volumeAttributesClassName")
