"""Checks of the baseline level: known privilege escalations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pilothouse.kube.admission.podsecurity import checks
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
    37: ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
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


def capabilities(pod: checks.CheckedPod) -> checks.Violation | None:
    extra = {
        container["name"]: set((checks.security_of(container).get("capabilities") or {}).get("add") or ())
        - _CAPABILITIES
        for container in pod.containers
    }
    bad = [name for name, added in extra.items() if added]
    if not bad:
        return None
    added = checks.quoted(sorted(set().union(*extra.values())))
    detail = f"{checks.named('container', bad)} must not include {added} in securityContext.capabilities.add"
    return checks.Violation("non-default capabilities", detail)


def host_namespaces(pod: checks.CheckedPod) -> checks.Violation | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return checks.Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: checks.CheckedPod) -> checks.Violation | None:
    volumes = [volume["name"] for volume in pod.spec.get("volumes") or [] if volume.get("hostPath") is not None]
    return checks.Violation("hostPath volumes", checks.named("volume", volumes)) if volumes else None


def host_ports(pod: checks.CheckedPod) -> checks.Violation | None:
    used = {
        container["name"]: {str(port["hostPort"]) for port in container.get("ports") or [] if port.get("hostPort")}
        for container in pod.containers
    }
    bad = [name for name, ports in used.items() if ports]
    if not bad:
        return None
    ports = sorted(set().union(*used.values()))
    verb = checks.plural("uses", bad, many="use")
    return checks.Violation(
        "hostPort", f"{checks.named('container', bad)} {verb} {checks.plural('hostPort', ports)} {', '.join(ports)}"
    )


def host_probes(pod: checks.CheckedPod) -> checks.Violation | None:
    hosts = {container["name"]: set(_hosts(container)) for container in pod.containers}
    bad = sorted(name for name, result in hosts.items() if result)
    if not bad:
        return None
    verb, called = (
        checks.plural("uses", bad, many="use"),
        checks.named("probe or lifecycle host", sorted(set().union(*hosts.values()))),
    )
    return checks.Violation("probe or lifecycle host", f"{checks.named('container', bad)} {verb} {called}")


def _hosts(container: Json) -> Iterator[str]:
    """Yield the hosts in probes and lifecycle handlers of a container."""
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
        for action in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(action) or {}).get("host"):
                yield host


def privileged(pod: checks.CheckedPod) -> checks.Violation | None:
    bad = pod.names_of(lambda security: bool(security.get("privileged")))
    detail = f"{checks.named('container', bad)} must not set securityContext.privileged=true"
    return checks.Violation("privileged", detail) if bad else None


def proc_mount(pod: checks.CheckedPod) -> checks.Violation | None:
    said = {container["name"]: checks.security_of(container).get("procMount") for container in pod.containers}
    bad = {name: mount for name, mount in said.items() if mount not in (None, "Default")}
    if not bad:
        return None
    containers, values = checks.named("container", list(bad)), checks.quoted(sorted(set(bad.values())))
    return checks.Violation("procMount", f"{containers} must not set securityContext.procMount to {values}")


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
        parts = [checks.named("type", sorted(self.types))] if self.types else []
        parts += ["user may not be set"] if self.user else []
        parts += ["role may not be set"] if self.role else []
        return "; ".join(parts)


def se_linux_options(*more: str) -> checks.CheckPod:
    """Allow the given types besides the default types."""
    allowed = _TYPES | set(more)

    def check(pod: checks.CheckedPod) -> checks.Violation | None:
        result = _SELinuxFindings(allowed)
        violators = checks.setters(result.is_bad(pod.security), pod.names_of(result.is_bad))
        detail = f"{violators} set forbidden securityContext.seLinuxOptions: {result}"
        return checks.Violation("seLinuxOptions", detail) if violators else None

    return check


def sysctls(allowed: frozenset[str]) -> checks.CheckPod:
    def check(pod: checks.CheckedPod) -> checks.Violation | None:
        names = [sysctl["name"] for sysctl in pod.security.get("sysctls") or []]
        forbidden = [name for name in names if name not in allowed]
        return checks.Violation("forbidden sysctls", ", ".join(forbidden)) if forbidden else None

    return check


def windows_host_process(pod: checks.CheckedPod) -> checks.Violation | None:
    def is_host(security: Json) -> bool:
        return bool((security.get("windowsOptions") or {}).get("hostProcess"))

    violators = checks.setters(is_host(pod.security), pod.names_of(is_host))
    detail = f"{violators} must not set securityContext.windowsOptions.hostProcess=true"
    return checks.Violation("hostProcess", detail) if violators else None


def _baseline(name: str, revisions: dict[int, checks.CheckPod]) -> checks.Check:
    return checks.Check(name, Level.baseline, revisions)


BASELINE_CHECKS = [
    _baseline("appArmorProfile", {0: checks.app_armor}),
    _baseline("capabilities_baseline", {0: capabilities}),
    _baseline("hostNamespaces", {0: host_namespaces}),
    _baseline("hostPathVolumes", {0: host_path_volumes}),
    _baseline("hostPorts", {0: host_ports}),
    _baseline("hostProbesAndHostLifecycle", {34: host_probes}),
    _baseline("privileged", {0: privileged}),
    _baseline("procMount", {0: proc_mount, 35: checks.unless(lambda pod: pod.has_own_users, proc_mount)}),
    _baseline("seLinuxOptions", {0: se_linux_options(), 31: se_linux_options("container_engine_t")}),
    _baseline("seccompProfile_baseline", {0: checks.seccomp_annotations, 19: checks.seccomp_fields}),
    _baseline("sysctls", {since: sysctls(allowed) for since, allowed in _SYSCTLS.items()}),
    _baseline("windowsHostProcess", {0: windows_host_process}),
]
"""Sorted by id, the order of reports."""
