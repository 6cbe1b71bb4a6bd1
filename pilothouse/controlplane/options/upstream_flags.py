"""Flags of kube-apiserver that nothing here goes by.

Some are accepted so that its command lines work here: each tunes something that this server does not have or does by
itself, so that no answer to a client depends on it. Those whose feature is not there are refused, never ignored.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.flags.declare import Flag
from pilothouse.machinery.flags.values import BOOL, DURATION, INT, STRING, STRINGS, FlagType

WITHOUT_EFFECT_TITLE = "accepted without effect"


def _flag(name: str, type: FlagType[Any], why: str) -> Flag:
    return Flag(name, type, None, why)


WITHOUT_EFFECT = [
    _flag("contention-profiling", BOOL, "There are no Go locks to profile."),
    _flag("default-watch-cache-size", INT, "Watch caches size themselves."),
    _flag("delete-collection-workers", INT, "The objects of a collection are deleted one after the other."),
    _flag("enable-garbage-collector", BOOL, "Owner references are always honoured on deletion."),
    _flag("etcd-count-metric-poll-period", DURATION, "Object counts are known without polling."),
    _flag("etcd-db-metric-poll-interval", DURATION, "The size of the store is known without polling."),
    _flag("etcd-readycheck-timeout", DURATION, "Readiness uses --etcd-healthcheck-timeout."),
    _flag("lease-reuse-duration-seconds", INT, "Leases of short-lived keys are managed by the store."),
    _flag("log-flush-frequency", DURATION, "The log is not buffered."),
    _flag("permit-address-sharing", BOOL, "The address can always be had again at once."),
    _flag("profiling", BOOL, "There are no /debug/pprof endpoints."),
    _flag("show-hidden-metrics-for-version", STRING, "No metric is hidden."),
    _flag("shutdown-watch-termination-grace-period", DURATION, "Watches are ended at once, and cleanly."),
    _flag("watch-cache-sizes", STRINGS, "Watch caches size themselves."),
]

_UNSUPPORTED_BOOLEANS = """
    emulation-forward-compatible enable-logs-handler
    log-json-split-stream log-text-split-stream
    runtime-config-emulation-forward-compatible
"""

_UNSUPPORTED_VALUES = """
    admission-control allow-metric-labels allow-metric-labels-manifest
    cert-dir coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period debug-socket-path
    disabled-metrics
    egress-selector-config-file emulated-version etcd-servers-overrides
    kubelet-read-only-port kubernetes-service-node-port
    log-json-info-buffer-size log-text-info-buffer-size max-connection-bytes-per-sec min-compatibility-version
    peer-advertise-ip peer-advertise-port peer-ca-file
    service-account-signing-endpoint
    tls-curve-preferences tracing-config-file vmodule
"""

UNSUPPORTED = [
    *(Flag(name, BOOL, False, "") for name in _UNSUPPORTED_BOOLEANS.split()),
    *(Flag(name, STRING, "", "") for name in _UNSUPPORTED_VALUES.split()),
]
UNSUPPORTED_NAMES = frozenset(flag.name for flag in UNSUPPORTED)
