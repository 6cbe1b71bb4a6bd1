"""Durations of rule evaluation and ratcheting, with upstream's names. Locks are needed: large objects are validated in
threads."""

from __future__ import annotations

from prometheus_client import Histogram

from pilothouse.apiserver.tallies import REGISTRY

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

COMPILATION = Histogram(
    "apiserver_cel_compilation_duration_seconds",
    "[BETA] CEL compilation time in seconds.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
EVALUATION = Histogram(
    "apiserver_cel_evaluation_duration_seconds",
    "[BETA] CEL evaluation time in seconds.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
RATCHETING = Histogram(
    "apiextensions_apiserver_validation_ratcheting_seconds",
    "[ALPHA] Time for comparison of old to new for the purposes of CRDValidationRatcheting during an UPDATE in "
    "seconds.",
    buckets=[float(f"{0.00001 * 4**power:g}") for power in range(10)],
    registry=REGISTRY,
)
