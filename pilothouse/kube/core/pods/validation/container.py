"""The rules for every container, whichever list it stands in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilothouse.kube.core.pods.validation.container_resources import validate_container_resources
from pilothouse.kube.core.pods.validation.environment import validate_env, validate_env_from
from pilothouse.kube.core.pods.validation.mounts import validate_volume_devices, validate_volume_mounts
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.ports import validate_container_ports
from pilothouse.kube.core.pods.validation.security_context import validate_security_context
from pilothouse.kube.core.pods.validation.volume_sources import PULL_POLICIES
from pilothouse.kube.validation.fields import dns_label, required_one_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Json

_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESIZED = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


@dataclass(frozen=True, slots=True)
class PodContext:
    """The parts of a pod that the rules for its containers depend on. `volumes` are the valid ones, by name."""

    volumes: Mapping[str, Json]
    claim_names: frozenset[str]
    restart_policy: str
    host_users: bool
    grace_period: int | None
    os_name: str | None
    """None where the pod names no operating system."""
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
        yield from _validate_resize_policies(policies, path.child("resizePolicy"), pod.restart_policy)
    if (context := container.get("securityContext")) is not None:
        yield from validate_security_context(context, path.child("securityContext"), host_users=pod.host_users)


def validate_image_whitespace(container: Json, path: Path) -> Errors:
    """Only pods have this rule: templates may hold images that something else replaces."""
    image = container.get("image") or ""
    if image != image.strip():
        yield invalid(path.child("image"), image, "must not have leading or trailing whitespace")


def _validate_resize_policies(policies: Sequence[Json], path: Path, pod_policy: str) -> Errors:
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            yield duplicate(path.index(position), resource)
        seen.add(resource)
        yield from required_one_of(resource, path, _RESIZED)
        yield from required_one_of(restart, path, _RESIZE_POLICIES)
        if pod_policy == "Never" and restart != "NotRequired":
            yield invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
