"""Fields that depend on the pod's operating system, and fields of Windows containers."""

from __future__ import annotations

import re

from pilothouse.kinds.pods import containers_with_path
from pilothouse.kube.config import CAPABILITIES
from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, not_supported, required
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
_HOST_FIELDS = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
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
        context = spec.get("securityContext") or {}
        fields: tuple[str, ...] = _POD_FIELDS
        if version_rules.holds("HostFieldsOfPodSpecs"):
            fields = (*(field for field in _POD_FIELDS if field not in _HOST_FIELDS), *_HOST_FIELDS)
        for field in fields:
            parent, _, name = field.rpartition(".")
            if (context if parent else spec).get(name) is not None:
                yield forbidden(path.child(field), NOT_ON_WINDOWS)
        for at, container in containers_with_path(spec, path):
            context = container.get("securityContext") or {}
            for name in _CONTAINER_FIELDS:
                if context.get(name) is not None:
                    yield forbidden(at.child("securityContext", name), NOT_ON_WINDOWS)


_MAX_SPEC_KIB = 64
_MAX_DOMAIN = 256
_MAX_USER = 104

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NET_BIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_BAD_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_DOTS_AND_SPACES = re.compile("[. ]+")


def validate_windows_options(options: Json, path: Path) -> Errors:
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        yield from dns_subdomain(name, path.child("gmsaCredentialSpecName"))
    if (spec := options.get("gmsaCredentialSpec")) is not None:
        if not spec:
            yield invalid(path.child("gmsaCredentialSpec"), spec, "gmsaCredentialSpec cannot be an empty string")
        elif len(spec.encode()) > _MAX_SPEC_KIB * 1024:
            reason = f"gmsaCredentialSpec size must be under {_MAX_SPEC_KIB} KiB"
            yield invalid(path.child("gmsaCredentialSpec"), spec, reason)
    if (user := options.get("runAsUserName")) is not None:
        for problem in _user_problems(user):
            yield invalid(path.child("runAsUserName"), user, problem)


def _user_problems(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _CONTROL.search(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    return (_domain_problems(domain) if backslash else []) + _account_problems(user)


def _domain_problems(domain: str) -> list[str]:
    checks = {
        f"runAsUserName's Domain length must be under {_MAX_DOMAIN} characters": len(domain.encode()) >= _MAX_DOMAIN,
        "runAsUserName's Domain doesn't match the NetBios nor the DNS format": not (
            _NET_BIOS.fullmatch(domain) or _DNS_NAME.fullmatch(domain)
        ),
    }
    return [problem for problem, violated in checks.items() if violated]


def _account_problems(user: str) -> list[str]:
    too_long = f"runAsUserName's User length must not be longer than {_MAX_USER} characters"
    checks = {
        "runAsUserName's User cannot be empty": not user,
        too_long: len(user.encode()) > _MAX_USER,
        "runAsUserName's User cannot contain only periods or spaces": _DOTS_AND_SPACES.fullmatch(user) is not None,
        "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]": bool(
            _BAD_USER.search(user)
        ),
    }
    return [problem for problem, violated in checks.items() if violated]


def validate_host_processes(spec: Json, path: Path) -> Errors:
    """Require HostProcess containers to be all or none of the pod's containers, and on the host network."""
    of_pod = _host_process(spec)
    inherited = []
    for at, container in containers_with_path(spec, path):
        own = _host_process(container)
        if of_pod is not None and own is not None and own != of_pod:
            printed = "true" if of_pod else "false"
            reason = f"pod hostProcess value must be identical if both are specified, was {printed}"
            yield invalid(at.child("securityContext", "windowsOptions", "hostProcess"), own, reason)
        inherited.append(of_pod if own is None else own)
    if not any(inherited):
        return
    if not all(inherited):
        reason = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", reason)
    if not spec.get("hostNetwork"):
        reason = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(path.child("hostNetwork"), False, reason)
    if not CAPABILITIES.allow_privileged:
        yield forbidden(path, "hostProcess containers are disallowed by cluster policy")


def _host_process(part: Json) -> bool | None:
    value = ((part.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    return None if value is None else bool(value)
