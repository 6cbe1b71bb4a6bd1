"""Security contexts of containers and pods."""

from __future__ import annotations

import re

from pilothouse.kube.config import CAPABILITIES
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.validation.operating_system import validate_windows_options
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.core.pods.validation.profiles import validate_apparmor_profile, validate_seccomp_profile
from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.pattern_format import is_valid_group_id, is_valid_user_id

_PROC_MOUNTS = ("Default", "Unmasked")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_SYSCTL_NAME = re.compile(_SYSCTL.removeprefix("^").removesuffix("$"))
_MAX_SYSCTL_NAME = 253
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in ("sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni", "msg")
)
_SWAP_SEPARATORS = str.maketrans("./", "/.")


def validate_security_context(context: Json, path: Path, options: PodValidationOptions, *, host_users: bool) -> Errors:
    """Validate a container's security context."""
    if context.get("privileged") and not CAPABILITIES.allow_privileged:
        yield forbidden(path.child("privileged"), "disallowed by cluster policy")
    yield from _validate_ids(context, path)
    if (mount := context.get("procMount")) is not None:
        yield from one_of(mount, path.child("procMount"), _PROC_MOUNTS)
        if host_users and mount == "Unmasked":
            yield invalid(path.child("procMount"), mount, "`hostUsers` must be false to use `Unmasked`")
    if (profile := context.get("seccompProfile")) is not None:
        yield from validate_seccomp_profile(profile, path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            reason = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, internal_form("SecurityContext", context), reason)
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN" and not options.allow_system_admin_without_escalation:
                reason = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                yield invalid(path, internal_form("SecurityContext", context), reason)
    yield from _validate_windows_and_apparmor(context, path)


def _validate_windows_and_apparmor(context: Json, path: Path) -> Errors:
    if (windows := context.get("windowsOptions")) is not None:
        yield from validate_windows_options(windows, path.child("windowsOptions"))
    if (profile := context.get("appArmorProfile")) is not None:
        yield from validate_apparmor_profile(profile, path.child("appArmorProfile"))


def _validate_ids(context: Json, path: Path) -> Errors:
    if (user := context.get("runAsUser")) is not None:
        for message in is_valid_user_id(user):
            yield invalid(path.child("runAsUser"), user, message)
    if (group := context.get("runAsGroup")) is not None:
        yield from _validate_group(group, path.child("runAsGroup"))


def _validate_group(group: int, path: Path) -> Errors:
    for message in is_valid_group_id(group):
        yield invalid(path, group, message)


def validate_pod_security_context(spec: Json, spec_path: Path, options: PodValidationOptions) -> Errors:
    """Validate a pod's security context, and the host fields that upstream's internal type has in the security
    context."""
    context, path = spec.get("securityContext") or {}, spec_path.child("securityContext")
    if (group := context.get("fsGroup")) is not None:
        yield from _validate_group(group, path.child("fsGroup"))
    yield from _validate_ids(context, path)
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _validate_group(group, path.child("supplementalGroups").index(position))
    of_spec = version_rules.holds("HostFieldsOfPodSpecs")
    if not of_spec:
        yield from _validate_shared_processes(spec, path)
    if sysctls := context.get("sysctls"):
        seen: set[str] = set()
        for position, sysctl in enumerate(sysctls):
            at, name = path.child("sysctls").index(position).child("name"), sysctl.get("name") or ""
            if not name:
                yield required(at)
            elif len(name) > _MAX_SYSCTL_NAME or not _SYSCTL_NAME.fullmatch(name):
                reason = f"must have at most {_MAX_SYSCTL_NAME} characters and match regex {_SYSCTL}"
                yield invalid(at, name, reason)
            elif name in seen:
                yield duplicate(at, name)
            if not options.allow_namespaced_sysctls_on_host and (problem := host_sysctl_problem(name, spec)):
                yield invalid(at, name, problem)
            seen.add(name)
    if (policy := context.get("fsGroupChangePolicy")) is not None:
        yield from one_of(policy, path.child("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))
    if (profile := context.get("seccompProfile")) is not None:
        yield from validate_seccomp_profile(profile, path.child("seccompProfile"))
    yield from _validate_windows_and_apparmor(context, path)
    if (policy := context.get("supplementalGroupsPolicy")) is not None:
        yield from one_of(policy, path.child("supplementalGroupsPolicy"), ("Merge", "Strict"))
    if (policy := context.get("seLinuxChangePolicy")) is not None:
        allowed = ("MountOption", "Recursive") if options.allow_any_selinux_change_policy else ("Recursive",)
        if policy not in allowed:
            yield not_supported(path.child("seLinuxChangePolicy"), policy, allowed)
    if of_spec:
        yield from _validate_shared_processes(spec, spec_path)


def _validate_shared_processes(spec: Json, path: Path) -> Errors:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        reason = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(path.child("shareProcessNamespace"), True, reason)


def host_sysctl_problem(name: str, spec: Json) -> str:
    """Return the reason against a sysctl that needs a namespace of the pod's own, empty for an allowed sysctl."""
    separator = re.search("[./]", name)
    if separator and separator[0] == "/":
        name = name.translate(_SWAP_SEPARATORS)
    name = name.partition("*")[0]
    if spec.get("hostNetwork") and name.startswith("net."):
        return "may not be specified when 'hostNetwork' is true"
    if spec.get("hostIPC") and (name in _IPC_SYSCTLS or name.startswith("fs.mqueue.")):
        return "may not be specified when 'hostIPC' is true"
    return ""
