"""Flags of kube-apiserver whose feature is not there: giving one is an error, never ignored."""

from __future__ import annotations

from pilothouse.machinery.flags.declare import Flag
from pilothouse.machinery.flags.values import BOOL, STRING

_BOOLEANS = """
    emulation-forward-compatible enable-logs-handler
    log-json-split-stream log-text-split-stream
    runtime-config-emulation-forward-compatible
"""

_VALUES = """
    admission-control allow-metric-labels allow-metric-labels-manifest
    cert-dir coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period debug-socket-path
    disabled-metrics
    egress-selector-config-file emulated-version etcd-servers-overrides
    kubelet-read-only-port kubernetes-service-node-port
    log-json-info-buffer-size log-text-info-buffer-size max-connection-bytes-per-sec min-compatibility-version
    peer-advertise-ip peer-advertise-port peer-ca-file
    service-account-signing-endpoint
    strict-transport-security-directives tls-curve-preferences tracing-config-file vmodule
"""

FLAGS = [
    *(Flag(name, BOOL, False, "") for name in _BOOLEANS.split()),
    *(Flag(name, STRING, "", "") for name in _VALUES.split()),
]
NAMES = frozenset(flag.name for flag in FLAGS)
