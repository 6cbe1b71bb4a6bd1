"""The metrics of auditing, under upstream's names."""

from __future__ import annotations

from prometheus_client import Counter

from pilothouse.apiserver.tallies import REGISTRY, CounterTally

EVENTS = CounterTally(
    "apiserver_audit_event",
    "[ALPHA] Counter of audit events generated and sent to the audit backend.",
    (),
    registry=REGISTRY,
)
ERRORS = Counter(
    "apiserver_audit_error_total",
    "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies the plugin "
    "affected by the error.",
    ("plugin",),
    registry=REGISTRY,
)
LEVELS = CounterTally(
    "apiserver_audit_level",
    "[ALPHA] Counter of policy levels for audit events (1 per request).",
    ("level",),
    registry=REGISTRY,
)
REJECTED = Counter(
    "apiserver_audit_requests_rejected_total",
    "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
    registry=REGISTRY,
)
