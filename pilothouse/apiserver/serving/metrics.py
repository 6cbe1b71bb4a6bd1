"""Metrics of serving."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY

TLS_HANDSHAKE_ERRORS = Counter(
    "apiserver_tls_handshake_errors_total",
    "Number of requests dropped with 'TLS handshake error from' error",
    registry=REGISTRY,
)
