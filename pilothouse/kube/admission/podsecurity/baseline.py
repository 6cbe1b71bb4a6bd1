"""Checks of the baseline level: known privilege escalations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pilothouse.kube.admission.podsecurity.checks import (
    Check,
    CheckedPod,
    CheckPod,
    Violation,
    app_armor,
    named,
    plural,
    quoted,
    seccomp_annotations,
    seccomp_fields,
    security_of,
    setters,
    unless,
)
from pilothouse.kube.admission.podsecurity.policy import Level
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_SYSCTLS_SINCE: dict[int, tuple[str, ...]] = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}

_SYSCTLS: dict[int, frozenset[str]] = {
    since: frozenset(name for earlier, names in _SYSCTLS_SINCE.items() if earlier <= since for name in names)
    for since in _SYSCTLS_SINCE
}
"""Allowed sysctls, by the first version that allows them."""

_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)

_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))


def capabilities(pod: CheckedPod) -> Violation | None:
    extra = {
        container["name"]: set((security_of(container).get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        for container in pod.containers
    }
    bad = [name for name, added in extra.items() if added]
    if not bad:
        return None
    added = quoted(sorted(set().union(*extra.values())))
    detail = f"{named('container', bad)} must not include {added} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def host_namespaces(pod: CheckedPod) -> Violation | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: CheckedPod) -> Violation | None:
    volumes = [volume["name"] for volume in pod.spec.get("volumes") or [] if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", named("volume", volumes)) if volumes else None


def host_ports(pod: CheckedPod) -> Violation | None:
    used = {
        container["name"]: {str(port["hostPort"]) for port in container.get("ports") or [] if port.get("hostPort")}
        for container in pod.containers
    }
    bad = [name for name, ports in used.items() if ports]
    if not bad:
        return None
    ports = sorted(set().union(*used.values()))
    verb = plural("uses", bad, many="use")
    return Violation("hostPort", f"{named('container', bad)} {verb} {plural('hostPort', ports)} {', '.join(ports)}")


def host_probes(pod: CheckedPod) -> Violation | None:
    hosts = {container["name"]: set(_hosts(container)) for container in pod.containers}
    bad = sorted(name for name, result in hosts.items() if result)
    if not bad:
        return None
    verb, called = (
        plural("uses", bad, many="use"),
        named("probe or lifecycle host", sorted(set().union(*hosts.values()))),
    )
    return Violation("probe or lifecycle host", f"{named('container', bad)} {verb} {called}")


def _hosts(container: Json) -> Iterator[str]:
    """Yield the hosts in probes and lifecycle handlers of a container."""
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
        for action in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(action) or {}).get("host"):
                yield host


def privileged(pod: CheckedPod) -> Violation | None:
    bad = pod.names_of(lambda security: bool(security.get("privileged")))
    detail = f"{named('container', bad)} must not set securityContext.privileged=true"
    return Violation("privileged", detail) if bad else None


def proc_mount(pod: CheckedPod) -> Violation | None:
    said = {container["name"]: security_of(container).get("procMount") for container in pod.containers}
    bad = {name: mount for name, mount in said.items() if mount not in (None, "Default")}
    if not bad:
        return None
    containers, values = named("container", list(bad)), quoted(sorted(set(bad.values())))
    return Violation("procMount", f"{containers} must not set securityContext.procMount to {values}")


@dataclass(slots=True)
class _SELinuxFindings:
    allowed: frozenset[str]
    types: set[str] = field(default_factory=set)
    user: bool = False
    role: bool = False

    def is_bad(self, security: Json) -> bool:
        """Record the finding and report it."""
        options = security.get("seLinuxOptions") or {}
        kind, user, role = (options.get(name) or "" for name in ("type", "user", "role"))
        if kind not in self.allowed:
            self.types.add(kind)
        self.user, self.role = self.user or bool(user), self.role or bool(role)
        return kind not in self.allowed or bool(user or role)

    def __str__(self) -> str:
        parts = [named("type", sorted(self.types))] if self.types else []
        parts += ["user may not be set"] if self.user else []
        parts += ["role may not be set"] if self.role else []
        return "; ".join(parts)


def se_linux_options(*more: str) -> CheckPod:
    """Allow the given types besides the default types."""
    allowed = _TYPES | set(more)

    def check(pod: CheckedPod) -> Violation | None:
        result = _SELinuxFindings(allowed)
        violators = setters(result.is_bad(pod.security), pod.names_of(result.is_bad))
        detail = f"{violators} set forbidden securityContext.seLinuxOptions: {result}"
        return Violation("seLinuxOptions", detail) if violators else None

    return check


def sysctls(allowed: frozenset[str]) -> CheckPod:
    def check(pod: CheckedPod) -> Violation | None:
        names = [sysctl["name"] for sysctl in pod.security.get("sysctls") or []]
        forbidden = [name for name in names if name not in allowed]
        return Violation("forbidden sysctls", ", ".join(forbidden)) if forbidden else None

    return check


def windows_host_process(pod: CheckedPod) -> Violation | None:
    def is_host(security: Json) -> bool:
        return bool((security.get("windowsOptions") or {}).get("hostProcess"))

    violators = setters(is_host(pod.security), pod.names_of(is_host))
    detail = f"{violators} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if violators else None


def _baseline(name: str, revisions: dict[int, CheckPod]) -> Check:
    return Check(name, Level.baseline, revisions)


BASELINE_CHECKS = [
    _baseline("appArmorProfile", {0: app_armor}),
    _baseline("capabilities_baseline", {0: capabilities}),
    _baseline("hostNamespaces", {0: host_namespaces}),
    _baseline("hostPathVolumes", {0: host_path_volumes}),
    _baseline("hostPorts", {0: host_ports}),
    _baseline("hostProbesAndHostLifecycle", {34: host_probes}),
    _baseline("privileged", {0: privileged}),
    _baseline("procMount", {0: proc_mount, 35: unless(lambda pod: pod.has_own_users, proc_mount)}),
    _baseline("seLinuxOptions", {0: se_linux_options(), 31: se_linux_options("container_engine_t")}),
    _baseline("seccompProfile_baseline", {0: seccomp_annotations, 19: seccomp_fields}),
    _baseline("sysctls", {since: sysctls(allowed) for since, allowed in _SYSCTLS.items()}),
    _baseline("windowsHostProcess", {0: windows_host_process}),
]
"""Sorted by id, the order of reports."""
