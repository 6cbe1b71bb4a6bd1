"""Metrics of conversion webhooks, with upstream's names."""

from __future__ import annotations

from enum import Enum

from prometheus_client import Counter, Histogram

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import HistogramTally

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)

REQUESTS = Counter(
    "apiserver_conversion_webhook_request_total",
    "[ALPHA] Counter for conversion webhook requests with success/failure and failure error type",
    ("result", "failure_type"),
    registry=REGISTRY,
)
LATENCY = Histogram(
    "apiserver_conversion_webhook_duration_seconds",
    "[ALPHA] Conversion webhook request latency",
    ("result", "failure_type"),
    buckets=_SECONDS,
    registry=REGISTRY,
)
CRD_LATENCY = HistogramTally(
    "apiserver_crd_conversion_webhook_duration_seconds",
    "[ALPHA] CRD webhook conversion duration in seconds",
    ("crd_name", "from_version", "to_version", "succeeded"),
    bounds=tuple(0.001 * 2**power for power in range(15)),
    registry=REGISTRY,
)


class ConversionFailure(Enum):
    CALL = "conversion_webhook_call_failure"
    MALFORMED_RESPONSE = "conversion_webhook_malformed_response_failure"
    PARTIAL_RESPONSE = "conversion_webhook_partial_response_failure"
    INVALID_OBJECT = "conversion_webhook_invalid_converted_object_failure"


def observe(seconds: float, failure: ConversionFailure | None) -> None:
    labels = ("failure", failure.value) if failure else ("success", "")
    REQUESTS.labels(*labels).inc()
    LATENCY.labels(*labels).observe(seconds)
