"""What became of questions to webhooks, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally, HistogramTally

EVALUATIONS = CounterTally(
    "apiserver_authorization_webhook_evaluations",
    "Calls to authorization webhooks, by result: success, timeout, error or canceled.",
    ("name", "result"),
    registry=REGISTRY,
)
DURATION = HistogramTally(
    "apiserver_authorization_webhook_duration_seconds",
    "Seconds that calls to authorization webhooks took.",
    ("name", "result"),
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    registry=REGISTRY,
)
FAIL_OPEN = CounterTally(
    "apiserver_authorization_webhook_evaluations_fail_open",
    "Calls to authorization webhooks that failed, after which the others decided.",
    ("name", "result"),
    registry=REGISTRY,
)
EXCLUSIONS = CounterTally(
    "apiserver_authorization_match_condition_exclusions",
    "Requests that a match condition kept from an authorizer.",
    ("type", "name"),
    registry=REGISTRY,
)
MATCH_FAILURES = CounterTally(
    "apiserver_authorization_match_condition_evaluation_errors",
    "Requests of which a match condition could not be evaluated.",
    ("type", "name"),
    registry=REGISTRY,
)
