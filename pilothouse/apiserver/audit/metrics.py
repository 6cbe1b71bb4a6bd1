"""The metrics of auditing, under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally

EVENTS = CounterTally("apiserver_audit_event", "Audit events that were sent to a backend.", (), registry=REGISTRY)
ERRORS = Counter(
    "apiserver_audit_error_total", "Audit events that failed to be audited properly.", ("plugin",), registry=REGISTRY
)
LEVELS = CounterTally("apiserver_audit_level", "Policy levels for audit events.", ("level",), registry=REGISTRY)
REJECTED = Counter(
    "apiserver_audit_requests_rejected_total",
    "Requests rejected because of an error in the audit logging backend.",
    registry=REGISTRY,
)
