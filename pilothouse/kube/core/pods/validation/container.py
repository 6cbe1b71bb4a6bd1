"""Rules for containers of every kind: fields, ports, mounts and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilothouse.kube.core.pods.validation.container_resources import validate_container_resources
from pilothouse.kube.core.pods.validation.environment import validate_env, validate_env_from
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.security_context import validate_security_context
from pilothouse.kube.core.pods.validation.volumes import PULL_POLICIES
from pilothouse.kube.validation.fields import dns_label, local_descending_path, no_backsteps, port_num, required_one_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, not_found, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_valid_port_name

_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESIZED = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


@dataclass(frozen=True, slots=True)
class PodContext:
    """Properties of a pod for the validation of containers. `volumes`: valid volumes by name."""

    volumes: Mapping[str, Json]
    claim_names: frozenset[str]
    restart_policy: str
    host_users: bool
    grace_period: int | None
    os_name: str | None
    """None for a pod without os.name."""
    options: PodValidationOptions


def validate_container(container: Json, path: Path, pod: PodContext) -> Errors:
    if not container.get("name"):
        yield required(path.child("name"))
    else:
        yield from dns_label(container["name"], path.child("name"))
    if not container.get("image"):
        yield required(path.child("image"))
    if (policy := container.get("terminationMessagePolicy")) not in _MESSAGE_POLICIES:
        yield from required_one_of(policy or "", path.child("terminationMessagePolicy"), _MESSAGE_POLICIES)
    if ports := container.get("ports"):
        yield from validate_container_ports(ports, path.child("ports"))
    if variables := container.get("env"):
        yield from validate_env(variables, path.child("env"))
    if sources := container.get("envFrom"):
        yield from validate_env_from(sources, path.child("envFrom"))
    if mounts := container.get("volumeMounts"):
        yield from validate_volume_mounts(mounts, container, pod.volumes, path.child("volumeMounts"))
    if devices := container.get("volumeDevices"):
        yield from validate_volume_devices(devices, container, pod.volumes, path.child("volumeDevices"))
    if (policy := container.get("imagePullPolicy")) not in PULL_POLICIES:
        yield from required_one_of(policy or "", path.child("imagePullPolicy"), PULL_POLICIES)
    if resources := container.get("resources"):
        yield from validate_container_resources(resources, path.child("resources"), pod.claim_names, pod.options)
    if policies := container.get("resizePolicy"):
        resize_policy_path = path.child("resizePolicy")
        seen: set[str] = set()
        for position, policy in enumerate(policies):
            resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
            if resource in seen:
                yield duplicate(resize_policy_path.index(position), resource)
            seen.add(resource)
            yield from required_one_of(resource, resize_policy_path, _RESIZED)
            yield from required_one_of(restart, resize_policy_path, _RESIZE_POLICIES)
            if pod.restart_policy == "Never" and restart != "NotRequired":
                yield invalid(resize_policy_path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
    if (context := container.get("securityContext")) is not None:
        yield from validate_security_context(
            context, path.child("securityContext"), pod.options, host_users=pod.host_users
        )


def validate_image_whitespace(container: Json, path: Path) -> Errors:
    """Reject whitespace around the image. Templates are exempt: placeholders may be replaced later."""
    image = container.get("image") or ""
    if image != image.strip():
        yield invalid(path.child("image"), image, "must not have leading or trailing whitespace")


PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_container_ports(ports: Sequence[Json], path: Path) -> Errors:
    names: set[str] = set()
    for position, port in enumerate(ports):
        at = path.index(position)
        if name := port.get("name"):
            name_path = at.child("name")
            messages = is_valid_port_name(name)
            for message in messages:
                yield invalid(name_path, name, message)
            if not messages:
                if name in names:
                    yield duplicate(name_path, name)
                names.add(name)
        if not port.get("containerPort"):
            yield required(at.child("containerPort"))
        else:
            yield from port_num(port["containerPort"], at.child("containerPort"))
        if port.get("hostPort"):
            yield from port_num(port["hostPort"], at.child("hostPort"))
        if (protocol := port.get("protocol")) not in PROTOCOLS:
            yield from required_one_of(protocol or "", at.child("protocol"), PROTOCOLS)


_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def validate_volume_mounts(mounts: Sequence[Json], container: Json, volumes: Mapping[str, Json], path: Path) -> Errors:
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    device_paths, places = set(devices.values()), set[str]()
    for position, mount in enumerate(mounts):
        at, name, mount_path = path.index(position), mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(at.child("name"))
        if name not in volumes:
            yield not_found(at.child("name"), name)
        if not mount_path:
            yield required(at.child("mountPath"))
        if mount_path in places:
            yield invalid(at.child("mountPath"), mount_path, "must be unique")
        places.add(mount_path)
        if name in devices:
            yield invalid(at.child("name"), name, "must not already exist in volumeDevices")
        if mount_path in device_paths:
            yield invalid(at.child("mountPath"), mount_path, "must not already exist as a path in volumeDevices")
        if mount.get("subPath"):
            yield from local_descending_path(mount["subPath"], path.child("subPath"))
        if expression := mount.get("subPathExpr"):
            if mount.get("subPath"):
                yield invalid(at.child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive")
            yield from local_descending_path(expression, path.child("subPathExpr"))
        propagation_path = path.child("mountPropagation")
        mode = mount.get("mountPropagation")
        if mode is not None:
            if mode not in _PROPAGATIONS:
                yield not_supported(propagation_path, mode, _PROPAGATIONS)
            if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
                yield forbidden(
                    propagation_path, "Bidirectional mount propagation is available only to privileged containers"
                )
        recursive_read_only_path = path.child("recursiveReadOnly")
        mode = mount.get("recursiveReadOnly")
        if mode is not None and mode != "Disabled":
            if mode not in _RECURSIVE_READ_ONLY:
                yield not_supported(recursive_read_only_path, mode, _RECURSIVE_READ_ONLY)
            else:
                if not mount.get("readOnly"):
                    yield forbidden(recursive_read_only_path, "may only be specified when readOnly is true")
                if mount.get("mountPropagation") not in (None, "None"):
                    yield forbidden(
                        recursive_read_only_path, "may only be specified when mountPropagation is None or not specified"
                    )


def validate_volume_devices(
    devices: Sequence[Json], container: Json, volumes: Mapping[str, Json], path: Path
) -> Errors:
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    mount_paths = set(mounts.values())
    names: set[str] = set()
    places: set[str] = set()
    for position, device in enumerate(devices):
        at, name, device_path = path.index(position), device.get("name") or "", device.get("devicePath") or ""
        name_path = at.child("name")
        volume = volumes.get(name)
        if not name:
            yield required(name_path)
        if name in names:
            yield invalid(name_path, name, "must be unique")
        if volume is None:
            yield not_found(name_path, name)
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            reason = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(name_path, name, reason)
        devices_path = at.child("devicePath")
        if not device_path:
            yield required(devices_path)
        if device_path in places:
            yield invalid(devices_path, device_path, "must be unique")
        if device_path and any(no_backsteps(device_path, devices_path)):
            yield invalid(devices_path, device_path, "can not contain backsteps ('..')")
        else:
            places.add(device_path)
        if name in mounts:
            yield invalid(at.child("name"), name, "must not already exist in volumeMounts")
        if device_path in mount_paths:
            yield invalid(at.child("devicePath"), device_path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)
