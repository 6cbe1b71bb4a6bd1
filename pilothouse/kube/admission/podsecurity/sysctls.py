"""The sysctls that a pod may set, by the version since which it may."""

from __future__ import annotations

_SINCE: dict[int, tuple[str, ...]] = {
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

SYSCTLS: dict[int, frozenset[str]] = {
    since: frozenset(name for earlier, names in _SINCE.items() if earlier <= since for name in names)
    for since in _SINCE
}
