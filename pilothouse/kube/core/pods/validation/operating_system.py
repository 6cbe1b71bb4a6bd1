"""The fields that a pod may not set because of the operating system that it says it is for."""

from __future__ import annotations

from pilothouse.kinds.pods import containers_with_path
from pilothouse.machinery.field import Errors, Path, forbidden, not_supported, required
from pilothouse.machinery.objects import Json

_SYSTEMS = ("linux", "windows")
_NO_WINDOWS_OPTIONS = "windows options cannot be set for a linux pod"
NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_FIELDS = (
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)
_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def validate_os(spec: Json, path: Path) -> Errors:
    system = (spec.get("os") or {}).get("name") or ""
    if not system:
        yield required(path.child("os", "name"))
    elif system not in _SYSTEMS:
        yield not_supported(path.child("os"), system, _SYSTEMS)
    elif system == "linux":
        for at, part in ((path, spec), *containers_with_path(spec, path)):
            if (part.get("securityContext") or {}).get("windowsOptions") is not None:
                yield forbidden(at.child("securityContext", "windowsOptions"), _NO_WINDOWS_OPTIONS)
    else:
        yield from _validate_windows(spec, path)


def _validate_windows(spec: Json, path: Path) -> Errors:
    context = spec.get("securityContext") or {}
    for field in _POD_FIELDS:
        part, _, name = field.rpartition(".")
        if (context if part else spec).get(name) is not None:
            yield forbidden(path.child(field), NOT_ON_WINDOWS)
    for at, container in containers_with_path(spec, path):
        context = container.get("securityContext") or {}
        for name in _CONTAINER_FIELDS:
            if context.get(name) is not None:
                yield forbidden(at.child("securityContext", name), NOT_ON_WINDOWS)
