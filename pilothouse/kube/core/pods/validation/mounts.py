"""Where a container sees its volumes: mounted as directories, or as block devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilothouse.kube.validation.fields import local_descending_path, no_backsteps
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_found, not_supported, required
from pilothouse.machinery.objects import Json

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_volume_mounts(mounts: Sequence[Json], container: Json, volumes: Mapping[str, Json], path: Path) -> Errors:
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    device_paths, places = set(devices.values()), set[str]()
    for position, mount in enumerate(mounts):
        at, name, place = path.index(position), mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(at.child("name"))
        if name not in volumes:
            yield not_found(at.child("name"), name)
        if not place:
            yield required(at.child("mountPath"))
        if place in places:
            yield invalid(at.child("mountPath"), place, "must be unique")
        places.add(place)
        if name in devices:
            yield invalid(at.child("name"), name, "must not already exist in volumeDevices")
        if place in device_paths:
            yield invalid(at.child("mountPath"), place, "must not already exist as a path in volumeDevices")
        if mount.get("subPath"):
            yield from local_descending_path(mount["subPath"], path.child("subPath"))
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                yield invalid(at.child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive")
            yield from local_descending_path(expression, path.child("subPathExpr"))
        yield from _validate_propagation(mount, container, path.child("mountPropagation"))
        yield from _validate_recursive_read_only(mount, path.child("recursiveReadOnly"))


def _validate_propagation(mount: Json, container: Json, path: Path) -> Errors:
    mode = mount.get("mountPropagation")
    if mode is None:
        return
    if mode not in _PROPAGATIONS:
        yield not_supported(path, mode, _PROPAGATIONS)
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _validate_recursive_read_only(mount: Json, path: Path) -> Errors:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return
    if mode not in _RECURSIVE_READ_ONLY:
        yield not_supported(path, mode, _RECURSIVE_READ_ONLY)
        return
    if not mount.get("readOnly"):
        yield forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in (None, "None"):
        yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


def validate_volume_devices(
    devices: Sequence[Json], container: Json, volumes: Mapping[str, Json], path: Path
) -> Errors:
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    mount_paths = set(mounts.values())
    names: set[str] = set()
    places: set[str] = set()
    for position, device in enumerate(devices):
        at, name, place = path.index(position), device.get("name") or "", device.get("devicePath") or ""
        yield from _validate_device_name(name, at.child("name"), volumes, names)
        yield from _validate_device_path(place, at.child("devicePath"), places)
        if name in mounts:
            yield invalid(at.child("name"), name, "must not already exist in volumeMounts")
        if place in mount_paths:
            yield invalid(at.child("devicePath"), place, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _validate_device_name(name: str, path: Path, volumes: Mapping[str, Json], taken: set[str]) -> Errors:
    volume = volumes.get(name)
    if not name:
        yield required(path)
    if name in taken:
        yield invalid(path, name, "must be unique")
    if volume is None:
        yield not_found(path, name)
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid(path, name, why)


def _validate_device_path(place: str, path: Path, taken: set[str]) -> Errors:
    if not place:
        yield required(path)
    if place in taken:
        yield invalid(path, place, "must be unique")
    if place and any(no_backsteps(place, path)):
        yield invalid(path, place, "can not contain backsteps ('..')")
    else:
        taken.add(place)
