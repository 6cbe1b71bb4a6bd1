"""What limit ranges may say, and what follows from what they say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals

from pilothouse.kube.core.limitranges import LIMIT_RANGES
from pilothouse.machinery.objects import Json


def limit_range(*limits: Json) -> Json:
    return {"metadata": {"name": "l"}, "spec": {"limits": list(limits)}}


def container(**fields: Any) -> Json:
    return {"type": "Container", **fields}


def test_limits_follow_from_maxima_and_requests_from_limits_or_minima() -> None:
    made = decoded(LIMIT_RANGES, limit_range(container(max={"cpu": "2"}, min={"cpu": "1", "memory": "1Mi"})))
    (limit,) = made["spec"]["limits"]
    assert limit["default"] == {"cpu": "2"}
    assert limit["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}


def test_only_limits_of_containers_have_defaults() -> None:
    made = decoded(LIMIT_RANGES, limit_range({"type": "Pod", "max": {"cpu": "2"}}))
    assert made["spec"]["limits"] == [{"type": "Pod", "max": {"cpu": "2"}}]


def test_a_nameless_limit_range_is_given_a_name() -> None:
    made = decoded(LIMIT_RANGES, limit_range())
    made["metadata"]["name"] = ""
    LIMIT_RANGES.strategy.prepare_for_create(made)
    assert len(made["metadata"]["name"]) == 36


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        ([container(), container()], ['spec.limits[1].type: Duplicate value: "Container"']),
        (
            [{"type": "Galaxy"}],
            ['spec.limits[0].type: Invalid value: "Galaxy": must be a standard limit type or fully qualified'],
        ),
        ([{"type": "example.com/Galaxy", "max": {"pods": "1"}}], []),
        (
            [container(max={"pods": "1"})],
            [
                'spec.limits[0].max[pods]: Invalid value: "pods": must be a standard resource for containers',
                'spec.limits[0].default[pods]: Invalid value: "pods": must be a standard resource for containers',
                'spec.limits[0].defaultRequest[pods]: Invalid value: "pods": '
                "must be a standard resource for containers",
            ],
        ),
        (
            [{"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}],
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
            ],
        ),
        (
            [{"type": "PersistentVolumeClaim"}],
            [
                "spec.limits[0].limits: Required value: "
                "either minimum or maximum storage value is required, but neither was provided"
            ],
        ),
        (
            [container(min={"cpu": "2"}, default={"cpu": "1"})],
            [
                'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": '
                "min value 2 is greater than default request value 1",
                'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
            ],
        ),
        (
            [container(maxLimitRequestRatio={"cpu": "500m"})],
            ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            [{"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}}],
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
                "ratio 3 is greater than max/min = 2.000000"
            ],
        ),
        (
            [container(default={"example.com/gpu": "2"}, defaultRequest={"example.com/gpu": "1"})],
            [
                'spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in example.com/gpu"
            ],
        ),
    ],
)
def test_amounts_that_contradict_each_other_are_refused(limits: list[Json], refused: list[str]) -> None:
    assert refusals(LIMIT_RANGES, limit_range(*limits)) == refused
