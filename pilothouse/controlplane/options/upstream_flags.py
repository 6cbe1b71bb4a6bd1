"""Flags of kube-apiserver without effect.

Some flags are accepted, because the server meets their promise at any value. Values that promise different behaviour
are rejected, as are flags of missing features. No flag is silently ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pilothouse.machinery import release
from pilothouse.machinery.flags import BOOL, DURATION, INT, STRING, STRINGS, Flag, FlagType

WITHOUT_EFFECT_TITLE = "accepted without effect"


def _flag(name: str, type: FlagType[Any], reason: str) -> Flag:
    return Flag(name, type, None, reason)


WITHOUT_EFFECT = [
    _flag("contention-profiling", BOOL, "There are no Go locks to profile."),
    _flag("default-watch-cache-size", INT, "Watch caches are sized automatically; deprecated by upstream."),
    _flag("etcd-count-metric-poll-period", DURATION, "Object counts are never older than any period."),
    _flag("etcd-db-metric-poll-interval", DURATION, "The size of the store is never older than any interval."),
    _flag("log-flush-frequency", DURATION, "The log is flushed with every line."),
    _flag("permit-address-sharing", BOOL, "Listeners have SO_REUSEADDR, as those of Go's net package always do."),
    _flag("show-hidden-metrics-for-version", STRING, "No metric is hidden."),
    _flag("shutdown-watch-termination-grace-period", DURATION, "Watches end at once, and cleanly: within any period."),
    _flag("watch-cache-sizes", STRINGS, "All sizes but 0 mean the same, as they do upstream."),
]


def _is_off(value: Any) -> bool:
    return not value


REFUSED_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "default-watch-cache-size": (_is_off, "watch caches can not be turned off"),
    "etcd-count-metric-poll-period": (_is_off, "the metric can not be turned off"),
    "etcd-db-metric-poll-interval": (_is_off, "the metric can not be turned off"),
    "watch-cache-sizes": (
        lambda sizes: any(size.partition("#")[2].strip() == "0" for size in sizes),
        "watch caches can not be turned off",
    ),
}
"""flag -> (predicate of rejected values, message)."""


_HIDDEN_METRICS = "show-hidden-metrics-for-version"


def refused_values(values: Mapping[str, Any]) -> Iterator[str]:
    for name, (is_refused, reason) in REFUSED_VALUES.items():
        if name in values and is_refused(values[name]):
            yield f"--{name}: {reason}"
    before = f"1.{release.current().minor - 1}"
    if values.get(_HIDDEN_METRICS, "") not in ("", before):
        reason = f"must be omitted or have the value '{before}': only the previous minor version is allowed"
        yield f"--{_HIDDEN_METRICS}: {reason}"


_UNSUPPORTED_BOOLEANS = """
    log-json-split-stream log-text-split-stream
"""

_UNSUPPORTED_VALUES = """
    admission-control allow-metric-labels allow-metric-labels-manifest
    debug-socket-path
    disabled-metrics
    etcd-servers-overrides
    kubelet-read-only-port kubernetes-service-node-port
    log-json-info-buffer-size log-text-info-buffer-size max-connection-bytes-per-sec
    peer-advertise-ip peer-advertise-port peer-ca-file
    service-account-signing-endpoint
    tls-curve-preferences vmodule
"""

UNSUPPORTED = [
    *(Flag(name, BOOL, False, "") for name in _UNSUPPORTED_BOOLEANS.split()),
    *(Flag(name, STRING, "", "") for name in _UNSUPPORTED_VALUES.split()),
]
UNSUPPORTED_NAMES = frozenset(flag.name for flag in UNSUPPORTED)
