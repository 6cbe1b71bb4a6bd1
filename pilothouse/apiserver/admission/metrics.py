"""Metrics of admission latency and rejections, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally, SummaryTally

_PREFIX = "apiserver_admission_"
_STEPS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_STEP = (
    "[{}] Admission sub-step latency {} in seconds, "
    "broken out for each operation and API resource and step type (validate or admit)."
)

STEP = HistogramTally(
    f"{_PREFIX}step_admission_duration_seconds",
    _STEP.format("STABLE", "histogram"),
    ("type", "operation", "rejected"),
    bounds=_STEPS,
    registry=REGISTRY,
)
STEP_SUMMARY = SummaryTally(
    f"{_PREFIX}step_admission_duration_seconds_summary", _STEP.format("ALPHA", "summary"), STEP, registry=REGISTRY
)
CONTROLLER = HistogramTally(
    f"{_PREFIX}controller_admission_duration_seconds",
    "[STABLE] Admission controller latency histogram in seconds, identified by name and broken out for "
    "each operation and API resource and type (validate or admit).",
    ("name", "type", "operation", "rejected"),
    bounds=_STEPS,
    registry=REGISTRY,
)
WEBHOOK = HistogramTally(
    f"{_PREFIX}webhook_admission_duration_seconds",
    "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each "
    "operation and API resource and type (validate or admit).",
    ("name", "type", "operation", "rejected"),
    bounds=(*_STEPS, 10, 25),
    registry=REGISTRY,
)
WEBHOOK_REQUESTS = CounterTally(
    f"{_PREFIX}webhook_request_total",
    "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type "
    "(validating or admit) and operation. Additional labels specify whether the request was rejected or "
    "not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics "
    "cardinality bounded.",
    ("name", "type", "operation", "code", "rejected"),
    registry=REGISTRY,
)
WEBHOOK_REJECTIONS = CounterTally(
    f"{_PREFIX}webhook_rejection_count",
    "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission type"
    " (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error"
    " or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero "
    "rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver"
    " when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the"
    " metrics cardinality bounded.",
    ("name", "type", "operation", "error_type", "rejection_code"),
    registry=REGISTRY,
    total=False,
)
WEBHOOK_FAIL_OPEN = CounterTally(
    f"{_PREFIX}webhook_fail_open_count",
    "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type"
    " (validating or admit).",
    ("name", "type"),
    registry=REGISTRY,
    total=False,
)
MATCH_CONDITION_ERRORS = CounterTally(
    f"{_PREFIX}match_condition_evaluation_errors_total",
    "Match conditions that could not be evaluated, by the name and kind of what has them, type and operation.",
    ("name", "kind", "type", "operation"),
    registry=REGISTRY,
)
MATCH_CONDITION_EXCLUSIONS = CounterTally(
    f"{_PREFIX}match_condition_exclusions_total",
    "Requests that a match condition excluded, by the name and kind of what has it, type and operation.",
    ("name", "kind", "type", "operation"),
    registry=REGISTRY,
)
MATCH_CONDITION_SECONDS = HistogramTally(
    f"{_PREFIX}match_condition_evaluation_seconds",
    "How long match conditions take, by the name and kind of what has them, type and operation.",
    ("name", "kind", "type", "operation"),
    bounds=(0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
    registry=REGISTRY,
)
