"""What of a job may change, and when that makes a new generation."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from sample_jobs import INDEXED, STRATEGY, created, job

from pilothouse.machinery.objects import Json


def update_refusals(old: Json, **changes: Any) -> list[str]:
    """Each once: the spec is looked at twice, which doubles what is wrong with it."""
    new = deepcopy(old)
    for path, value in changes.items():
        part = new
        *parents, last = path.split("__")
        for name in parents:
            part = part[name]
        part[last] = value
    STRATEGY.default(new)
    STRATEGY.prepare_for_update(new, old)
    return list(dict.fromkeys(map(str, STRATEGY.validate_update(new, old))))


def test_numbers_and_suspension_may_change() -> None:
    changes = {"spec__parallelism": 3, "spec__backoffLimit": 9, "spec__suspend": True, "spec__activeDeadlineSeconds": 4}
    assert update_refusals(created(job()), **changes) == []


@pytest.mark.parametrize(
    ("spec", "changes", "errors"),
    [
        ({}, {"spec__completions": 2}, ["completions: Invalid value: 2: field is immutable"]),
        (INDEXED, {"spec__completions": 3, "spec__parallelism": 3}, []),
        (
            INDEXED,
            {"spec__completions": 3},
            ["completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"],
        ),
        ({}, {"spec__managedBy": "a.io/b"}, ['managedBy: Invalid value: "a.io/b": field is immutable']),
        (
            INDEXED,
            {"spec__successPolicy": {"rules": [{"succeededCount": 1}]}},
            [
                'successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: '
                "field is immutable"
            ],
        ),
        (
            {},
            {
                "spec__podFailurePolicy": {"rules": [{"action": "Count", "onPodConditions": [{"type": "T"}]}]},
                "spec__podReplacementPolicy": "Failed",
            },
            [
                'podFailurePolicy: Invalid value: {"Rules":[{"Action":"Count","OnExitCodes":null,'
                '"OnPodConditions":[{"Type":"T","Status":"True"}]}]}: field is immutable'
            ],
        ),
    ],
)
def test_what_a_job_is_about_may_not_change(spec: Json, changes: Json, errors: list[str]) -> None:
    assert update_refusals(created(job(**spec)), **changes) == [f"spec.{error}" for error in errors]


def test_the_template_of_a_running_job_is_fixed() -> None:
    [error] = update_refusals(created(job()), spec__template__spec__nodeSelector={"a": "b"})
    assert error.startswith('spec.template: Invalid value: {"labels":{"batch.kubernetes.io/controller-uid":"u-1"')
    assert '"Spec":{"Volumes":null,' in error
    assert error.endswith(": field is immutable")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec__template__spec__nodeSelector", {"a": "b"}),
        ("spec__template__spec__tolerations", [{"key": "a", "operator": "Exists"}]),
        ("spec__template__spec__schedulingGates", [{"name": "a"}]),
        ("spec__template__spec__affinity", {"nodeAffinity": {}}),
        ("spec__template__metadata__annotations", {"a": "b"}),
    ],
)
def test_a_job_that_waits_can_be_told_where_to_run(path: str, value: Any) -> None:
    assert update_refusals(created(job(suspend=True)), **{path: value}) == []


def test_a_job_that_waits_can_get_other_resources_but_not_other_containers() -> None:
    old = created(job(suspend=True))
    resources = [{**old["spec"]["template"]["spec"]["containers"][0], "resources": {"limits": {"cpu": "1"}}}]
    assert update_refusals(old, spec__template__spec__containers=resources) == []
    other = [{**old["spec"]["template"]["spec"]["containers"][0], "image": "other"}]
    [error] = update_refusals(old, spec__template__spec__containers=other)
    assert error.startswith('spec.template.spec: Invalid value: {"Volumes":null,')


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"startTime": "2024-01-01T00:00:00Z"}, False),
        (
            {"startTime": "2024-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]},
            True,
        ),
        ({"active": 1}, False),
    ],
)
def test_a_suspended_job_is_changeable_once_its_pods_are_gone(status: Json, allowed: bool) -> None:
    old = created(job(suspend=True))
    old["status"] = status
    assert bool(update_refusals(old, spec__template__spec__nodeSelector={"a": "b"})) is not allowed


def test_only_a_new_spec_is_a_new_generation() -> None:
    old = created(job())
    same, other = deepcopy(old), deepcopy(old)
    other["spec"]["parallelism"] = 2
    for obj in (same, other):
        STRATEGY.prepare_for_update(obj, old)
    assert (same["metadata"]["generation"], other["metadata"]["generation"]) == (1, 2)
