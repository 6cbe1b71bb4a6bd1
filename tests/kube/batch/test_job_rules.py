"""What jobs may say, and what the server adds to them."""

from __future__ import annotations

import pytest
from rules import decoded
from sample_jobs import INDEXED, STRATEGY, created, job

from pilothouse.kube.batch.jobs import JOBS
from pilothouse.machinery.objects import Json


def refusals(obj: Json) -> list[str]:
    return list(map(str, STRATEGY.validate(created(obj))))


def test_a_job_runs_one_pod_to_its_end() -> None:
    spec = decoded(JOBS, job())["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"], spec["manualSelector"]) == ("NonIndexed", False, False)
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"


def test_a_job_with_parallelism_alone_has_no_number_of_completions() -> None:
    assert "completions" not in decoded(JOBS, job(parallelism=3))["spec"]
    assert decoded(JOBS, job(completions=3))["spec"]["parallelism"] == 1


def test_policies_of_failure_change_other_defaults() -> None:
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    sent = job(podFailurePolicy=policy, completionMode="Indexed", completions=2, backoffLimitPerIndex=1)
    spec = decoded(JOBS, sent)["spec"]
    assert (spec["podReplacementPolicy"], spec["backoffLimit"]) == ("Failed", 2**31 - 1)
    assert spec["podFailurePolicy"]["rules"][0]["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_the_server_labels_the_pods_and_selects_them() -> None:
    made = created(job())
    labels = {
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u-1",
        "batch.kubernetes.io/controller-uid": "u-1",
    }
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    STRATEGY.canonicalize(made)
    assert made["metadata"]["labels"] == labels


def test_a_job_without_labels_shares_those_of_its_template() -> None:
    assert created(job({"x": "y"}))["metadata"]["labels"].keys() > {"x", "job-name"}
    assert created(job({"x": "y"}, meta={"labels": {"own": "1"}}))["metadata"]["labels"] == {"own": "1"}


def test_a_manual_selector_is_taken_as_it_is() -> None:
    made = created(job({"x": "y"}, manualSelector=True, selector={"matchLabels": {"x": "y"}}))
    assert made["spec"]["template"]["metadata"]["labels"] == {"x": "y"}
    assert list(STRATEGY.validate(made)) == []
    assert refusals(job(manualSelector=True)) == [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
    ]


def test_forged_labels_and_selectors_are_refused() -> None:
    assert refusals(job({"controller-uid": "other"})) == [
        "spec.template.metadata.labels[controller-uid]: Invalid value: "
        '{"batch.kubernetes.io/controller-uid":"u-1","batch.kubernetes.io/job-name":"j",'
        '"controller-uid":"other","job-name":"j"}: must be \'u-1\'',
    ]
    [error] = refusals(job({"x": "y"}, selector={"matchLabels": {"x": "y"}}))
    assert error.endswith(": `selector` not auto-generated")


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (INDEXED, []),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            ["completions: Required value: when completion mode is Indexed"],
        ),
        (
            INDEXED | {"backoffLimitPerIndex": 1, "maxFailedIndexes": 6},
            ["maxFailedIndexes: Invalid value: 6: must be less than or equal to completions"],
        ),
        ({"backoffLimitPerIndex": 1}, ["backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
        (
            {"completionMode": "Indexed", "completions": 200_000, "backoffLimitPerIndex": 1, "parallelism": 20_000},
            [
                "maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above "
                "100000 and used with backoff limit per index",
            ],
        ),
        ({"managedBy": ""}, ["managedBy: Required value"]),
        ({"managedBy": "a.io/" + "x" * 60}, ["managedBy: Too long: may not be more than 63 bytes"]),
        (
            {"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {"rules": []}},
            ['podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"'],
        ),
        (
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            [
                'successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
                "requires indexed completion mode"
            ],
        ),
        (
            INDEXED | {"successPolicy": {"rules": []}},
            [
                "successPolicy.rules: Required value: "
                "at least one rules must be specified when the successPolicy is specified"
            ],
        ),
        (
            INDEXED | {"successPolicy": {"rules": [{}, {"succeededIndexes": "0-1", "succeededCount": 3}]}},
            [
                "successPolicy.rules[0]: Required value: "
                "at least one of succeededCount or succeededIndexes must be specified",
                "successPolicy.rules[1].succeededCount: Invalid value: 3: must be less than or equal to 2 "
                "(the number of indexes in the specified succeededIndexes field)",
            ],
        ),
        (
            INDEXED | {"successPolicy": {"rules": [{"succeededIndexes": "7", "succeededCount": 6}]}},
            [
                'successPolicy.rules[0].succeededIndexes: Invalid value: "7": error parsing succeededIndexes: '
                'too large index: "7"',
                "successPolicy.rules[0].succeededCount: Invalid value: 6: must be less than or equal to 5 "
                "(the number of specified completions)",
                "successPolicy.rules[0].succeededCount: Invalid value: 6: must be less than or equal to 0 "
                "(the number of indexes in the specified succeededIndexes field)",
            ],
        ),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Json, errors: list[str]) -> None:
    assert refusals(job(**spec)) == [f"spec.{error}" for error in errors]


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        ({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}, []),
        (
            {"onExitCodes": {"values": [1]}},
            [
                '.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
                '.onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
            ],
        ),
        (
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [2, 0, 2]}},
            [
                '.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
                ".onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                ".onExitCodes.values[2]: Duplicate value: 2",
                ".onExitCodes.values: Invalid value: [2,0,2]: must be ordered",
            ],
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": []}},
            [".onExitCodes.values: Invalid value: []: at least one value is required"],
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": None}},
            [".onExitCodes.values: Invalid value: null: at least one value is required"],
        ),
        (
            {"action": "Count", "onPodConditions": [{"type": "T", "status": "Odd"}]},
            ['.onPodConditions[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"'],
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}, "onPodConditions": [{"type": "T"}]},
            [": Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
        ),
    ],
)
def test_rules_about_failures_say_when_and_what(rule: Json, errors: list[str]) -> None:
    found = refusals(job(podFailurePolicy={"rules": [rule]}))
    assert found == [f"spec.podFailurePolicy.rules[0]{error}" for error in errors]


@pytest.mark.parametrize(
    ("restart", "spec", "error"),
    [
        ("Always", {}, 'Required value: valid values: "OnFailure", "Never"'),
        (
            "OnFailure",
            {"podFailurePolicy": {"rules": []}},
            'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
        ),
    ],
)
def test_pods_of_jobs_do_not_restart_for_ever(restart: str, spec: Json, error: str) -> None:
    assert refusals(job(restart=restart, **spec)) == [f"spec.template.spec.restartPolicy: {error}"]


def test_the_name_of_an_indexed_job_must_do_for_its_pods() -> None:
    [error] = refusals(job(meta={"name": "a" * 62}, **INDEXED))
    assert error.startswith(
        f'metadata.name: Invalid value: "{"a" * 62}": will not able to create pod with invalid DNS label'
    )


def test_users_are_warned_of_jobs_that_are_too_large_to_follow() -> None:
    made = created(job(completionMode="Indexed", completions=100_001, parallelism=10_001))
    [warning] = STRATEGY.warnings_on_create(made)
    assert warning.startswith("spec: In Indexed Jobs with a number of completions higher than 10^5")
    assert list(STRATEGY.warnings_on_update(made, made)) == []


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        ({"completions": 3}, {"succeeded": 1}, ("Running", "1/3", "")),
        ({"parallelism": 4}, {}, ("Running", "0/1 of 4", "")),
        ({"parallelism": 1}, {"conditions": [{"type": "Suspended", "status": "True"}]}, ("Suspended", "0/1", "")),
        (
            {"completions": 1},
            {
                "succeeded": 1,
                "startTime": "2024-01-01T00:00:00Z",
                "completionTime": "2024-01-01T00:03:05Z",
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            },
            ("Complete", "1/1", "3m5s"),
        ),
    ],
)
def test_tables_show_how_far_a_job_is(spec: Json, status: Json, cells: tuple[str, ...]) -> None:
    obj = created(job(**spec))
    obj["status"] = status
    shown = {column.name: column.cell for column in JOBS.columns}
    assert (shown["Status"](obj), shown["Completions"](obj), shown["Duration"](obj)) == cells
    assert JOBS.fields_of(obj)["status.successful"] == str(status.get("succeeded", 0))
