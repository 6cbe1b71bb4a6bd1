"""What controllers may report about a job."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.kube.batch.job_status import JobStatusUpdate
from pilothouse.machinery.field import root
from pilothouse.machinery.objects import Json

START, END, LATER = "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z", "2024-01-01T00:02:00Z"
SPEC: Json = {"completions": 1, "parallelism": 1, "completionMode": "NonIndexed"}
INDEXED: Json = {"completions": 5, "parallelism": 2, "completionMode": "Indexed"}
PER_INDEX = INDEXED | {"backoffLimitPerIndex": 1}


def conditions(*kinds: str) -> list[Json]:
    return [{"type": kind, "status": "True"} for kind in kinds]


DONE: Json = {
    "startTime": START,
    "completionTime": END,
    "succeeded": 1,
    "conditions": conditions("SuccessCriteriaMet", "Complete"),
}
FAILED: Json = {"startTime": START, "conditions": conditions("FailureTarget", "Failed")}


def refusals(status: Json, before: Json | None = None, spec: Json = SPEC) -> list[str]:
    job, old = {"spec": spec, "status": status}, {"spec": spec, "status": before or {}}
    return list(map(str, JobStatusUpdate(job, old, root("status")).validate()))


@pytest.mark.parametrize("status", [{}, {"active": 1, "ready": 1, "startTime": START}, DONE, FAILED])
def test_the_life_of_a_job_can_be_reported(status: Json) -> None:
    assert refusals(status) == []


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ({"active": -1}, ["active: Invalid value: -1: must be greater than or equal to 0"]),
        ({"ready": 1}, ["ready: Invalid value: 1: cannot set more ready pods than active"]),
        (
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
        (
            {**DONE, "conditions": conditions("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")},
            [
                "conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
                "conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
                "conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
                "conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            ],
        ),
        (
            {"startTime": START, "completionTime": END},
            [
                f'completionTime: Invalid value: "{END}": cannot set completionTime when there is no Complete=True '
                "condition"
            ],
        ),
        (
            {key: value for key, value in DONE.items() if key != "completionTime"},
            ["completionTime: Required value: completionTime is required for Complete jobs"],
        ),
        (
            {**DONE, "startTime": LATER},
            [f'completionTime: Invalid value: "{END}": must be equal to or after `startTime`'],
        ),
        (
            {**FAILED, "conditions": conditions("Failed")},
            ["conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"],
        ),
        (
            {**DONE, "conditions": conditions("Complete")},
            [
                "conditions: Invalid value: "
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
            ],
        ),
        ({**DONE, "active": 1}, ["active: Invalid value: 1: active>0 is invalid for finished job"]),
        ({**DONE, "terminating": 1}, ["terminating: Invalid value: 1: terminating>0 is invalid for finished job"]),
        (
            {"conditions": conditions("FailureTarget", "Failed")},
            ["startTime: Required value: startTime is required for finished job"],
        ),
        (
            {**FAILED, "uncountedTerminatedPods": {"failed": ["a"]}},
            [
                'uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: '
                "must be empty for finished job"
            ],
        ),
        (
            {"completedIndexes": "0"},
            [
                'completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode"
            ],
        ),
    ],
)
def test_what_cannot_have_happened_is_refused(status: Json, errors: list[str]) -> None:
    assert refusals(status) == [f"status.{error}" for error in errors]


@pytest.mark.parametrize(
    ("status", "spec", "errors"),
    [
        ({"completedIndexes": "0-2,4"}, INDEXED, []),
        (
            {"completedIndexes": "5"},
            INDEXED,
            ['completedIndexes: Invalid value: "5": error parsing completedIndexes: too large index: "5"'],
        ),
        (
            {"failedIndexes": "0"},
            INDEXED,
            ['failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null'],
        ),
        (
            {"completedIndexes": "0-3", "failedIndexes": "2,4"},
            PER_INDEX,
            ['failedIndexes: Invalid value: "2,4": failedIndexes and completedIndexes overlap at index: 2'],
        ),
    ],
)
def test_indexes_fit_the_job(status: Json, spec: Json, errors: list[str]) -> None:
    assert refusals(status, spec=spec) == [f"status.{error}" for error in errors]


@pytest.mark.parametrize(
    ("status", "before", "spec", "errors"),
    [
        (
            {},
            DONE,
            SPEC,
            [
                "conditions: Invalid value: cannot disable the terminal Complete=True condition",
                "succeeded: Invalid value: 0: cannot decrease the succeeded counter",
                "startTime: Invalid value: null: field is immutable for unsuspended job once set",
                "conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            ],
        ),
        ({"failed": 1}, {"failed": 2}, SPEC, ["failed: Invalid value: 1: cannot decrease the failed counter"]),
        ({}, {"succeeded": 2}, INDEXED | {"parallelism": 5}, []),
        (
            {**DONE, "completionTime": LATER},
            DONE,
            SPEC,
            [f'completionTime: Invalid value: "{LATER}": field is immutable'],
        ),
        ({}, {"startTime": START}, SPEC | {"suspend": True}, []),
        (
            {"startTime": LATER, "conditions": [{"type": "Suspended", "status": "False"}]},
            {"startTime": START, "conditions": conditions("Suspended")},
            SPEC,
            [],
        ),
        (
            DONE,
            {**DONE, "conditions": conditions("Complete")},
            SPEC,
            [
                "conditions: Invalid value: "
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
            ],
        ),
    ],
)
def test_what_was_reported_stays_true(status: Json, before: Json, spec: Json, errors: list[str]) -> None:
    assert refusals(status, before, spec) == [f"status.{error}" for error in errors]


@pytest.mark.parametrize("change", [{"ready": 0}, {}])
def test_a_status_that_is_already_wrong_can_still_be_written(change: Json) -> None:
    wrong: dict[str, Any] = {**DONE, "conditions": conditions("Complete"), "active": 1}
    assert refusals({**wrong, **change}, wrong) == []


def test_a_suspended_job_without_completions_need_not_start_to_be_done() -> None:
    status = {key: value for key, value in DONE.items() if key not in ("startTime", "succeeded")}
    assert refusals(status, spec=SPEC | {"completions": 0, "suspend": True}) == []


def test_a_success_policy_must_be_met() -> None:
    spec = INDEXED | {"successPolicy": {"rules": [{"succeededCount": 1}]}}
    done = {**DONE, "conditions": conditions("Complete")}
    why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
    assert refusals(done, done, spec) == [f"status.conditions: Invalid value: {why}"]
