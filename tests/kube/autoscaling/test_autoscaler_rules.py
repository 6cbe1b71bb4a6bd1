"""What autoscalers may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.autoscaling.horizontalpodautoscalers import (
    HORIZONTAL_POD_AUTOSCALERS,
    HorizontalPodAutoscalerStatusStrategy,
)
from pilothouse.machinery.objects import Json

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def autoscaler(*metrics: Json, **spec: Any) -> Json:
    return {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": list(metrics), **spec}}


def cpu(**target: Any) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def scale_up(**rules: Any) -> Json:
    return autoscaler(behavior={"scaleUp": rules})


def test_an_autoscaler_aims_at_four_fifths_of_the_cpu() -> None:
    spec = decoded(HORIZONTAL_POD_AUTOSCALERS, autoscaler())["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [cpu(type="Utilization", averageUtilization=80)]
    assert "behavior" not in spec


def test_a_behavior_is_filled_in_where_there_is_one() -> None:
    sent = autoscaler(behavior={"scaleDown": {"selectPolicy": "Min", "stabilizationWindowSeconds": 5}})
    behavior = decoded(HORIZONTAL_POD_AUTOSCALERS, sent)["spec"]["behavior"]
    assert behavior["scaleDown"] == {
        "selectPolicy": "Min",
        "stabilizationWindowSeconds": 5,
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert [policy["type"] for policy in behavior["scaleUp"]["policies"]] == ["Pods", "Percent"]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (
            {"minReplicas": 0},
            [
                "minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "metrics: Forbidden: must specify at least one Object or External metric to support scaling "
                "to zero replicas",
            ],
        ),
        (
            {"maxReplicas": 0},
            [
                "maxReplicas: Required value: must be set and greater than 0",
                "maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
            ],
        ),
        (
            {"maxReplicas": -1},
            [
                "maxReplicas: Invalid value: -1: must be greater than or equal to 1",
                "maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
            ],
        ),
        ({"scaleTargetRef": {"kind": "ReplicationController", "name": "r"}}, []),
        (
            {"scaleTargetRef": {"kind": "Pod", "name": "a/b"}},
            [
                "scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
                'scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
            ],
        ),
        (
            {"scaleTargetRef": {**TARGET, "apiVersion": "a/b/c"}},
            ['scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
    ],
)
def test_the_range_and_the_target_must_make_sense(spec: Json, errors: list[str]) -> None:
    assert refusals(HORIZONTAL_POD_AUTOSCALERS, autoscaler(**spec)) == [f"spec.{error}" for error in errors]


@pytest.mark.parametrize(
    ("metric", "errors"),
    [
        (cpu(type="Utilization", averageUtilization=1), []),
        (
            {},
            [
                "type: Required value: must specify a metric source type",
                *[
                    'type: Unsupported value: "": supported values: '
                    '"ContainerResource", "External", "Object", "Pods", "Resource"'
                ]
                * 2,
            ],
        ),
        ({"type": "Pods"}, ["pods: Required value: must populate information for the given metric source"]),
        (
            cpu(type="Odd"),
            [
                'resource.target.type: Invalid value: "Odd": must be either Utilization, Value, or AverageValue',
                "resource.target.averageUtilization: Required value: must set either a target raw value or a target "
                "utilization",
            ],
        ),
        (
            cpu(type="Utilization", averageUtilization=0, averageValue="0"),
            [
                'resource.target.averageValue: Invalid value: "0": must be positive',
                "resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
                "resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
            ],
        ),
        (
            {
                "type": "External",
                "external": {"metric": {"name": "a%"}, "target": {"type": "Value", "value": "1", "averageValue": "1"}},
            },
            [
                "external.metric.name: Invalid value: \"a%\": may not contain '%'",
                "external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",
            ],
        ),
        (
            {
                "type": "Object",
                "object": {
                    "metric": {},
                    "target": {"type": "Value"},
                    "describedObject": {"kind": "Service", "name": "s"},
                },
            },
            [
                "object.metric.name: Required value: must specify a metric name",
                "object.target.averageValue: Required value: must set either a target value or averageValue",
            ],
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}},
            ["pods.target.averageValue: Required value: must specify a positive target averageValue"],
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "pods",
                    "container": "",
                    "target": {"type": "Utilization", "averageUtilization": 5},
                },
            },
            [
                'containerResource.name: Invalid value: "pods": must be a standard resource for containers',
                "containerResource.container: Required value: must specify a container",
            ],
        ),
        (
            cpu(type="Utilization", averageUtilization=5)
            | {"pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
            ["pods: Forbidden: must populate the given metric source only"],
        ),
    ],
)
def test_a_metric_has_one_source_and_one_target(metric: Json, errors: list[str]) -> None:
    found = refusals(HORIZONTAL_POD_AUTOSCALERS, autoscaler(metric))
    assert found == [f"spec.metrics[0].{error}" for error in errors]


POLICY: Json = {"type": "Pods", "value": 1, "periodSeconds": 1}


@pytest.mark.parametrize(
    ("rules", "errors"),
    [
        ({"tolerance": "100m"}, []),
        ({"tolerance": "-1"}, ['tolerance: Invalid value: "-1": must be greater than or equal to 0']),
        (
            {"stabilizationWindowSeconds": 3601},
            ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
        ),
        (
            {"stabilizationWindowSeconds": -1},
            ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
        ),
        (
            {"selectPolicy": "Odd"},
            ['selectPolicy: Unsupported value: "Odd": supported values: "Disabled", "Max", "Min"'],
        ),
        (
            {"policies": [{"type": "Odd", "periodSeconds": 1801}]},
            [
                'policies[0].type: Unsupported value: "Odd": supported values: "Percent", "Pods"',
                "policies[0].value: Invalid value: 0: must be greater than zero",
                "policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            ],
        ),
    ],
)
def test_a_behavior_has_bounds(rules: Json, errors: list[str]) -> None:
    found = refusals(HORIZONTAL_POD_AUTOSCALERS, scale_up(**rules))
    assert found == [f"spec.behavior.scaleUp.{error}" for error in errors]


def test_what_was_wrong_before_may_stay_wrong() -> None:
    described = {"kind": "S", "name": "s", "apiVersion": "a/b/c"}
    source = {"describedObject": described, "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}
    wrong = autoscaler({"type": "Object", "object": source}, minReplicas=0, scaleTargetRef={"kind": "Odd", "name": "o"})
    assert len(refusals(HORIZONTAL_POD_AUTOSCALERS, wrong)) == 3
    assert update_refusals(HORIZONTAL_POD_AUTOSCALERS, wrong, wrong) == []


def test_the_status_has_counts_that_can_be() -> None:
    made = decoded(
        HORIZONTAL_POD_AUTOSCALERS, {**autoscaler(), "status": {"currentReplicas": -1, "desiredReplicas": -2}}
    )
    made["metadata"]["resourceVersion"] = "1"
    assert list(map(str, HorizontalPodAutoscalerStatusStrategy().validate_update(made, made))) == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0",
    ]


EXTERNAL: Json = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "9"}}}
PODS: Json = {
    "type": "Pods",
    "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "4"}},
}


@pytest.mark.parametrize(
    ("metrics", "statuses", "cell"),
    [
        ([cpu(type="Utilization", averageUtilization=50)], [], "cpu: <unknown>/50%"),
        (
            [cpu(type="Utilization", averageUtilization=50)],
            [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}],
            "cpu: 7%/50%",
        ),
        (
            [cpu(type="AverageValue", averageValue="1")],
            [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "300m"}}}],
            "cpu: 300m/1",
        ),
        (
            [EXTERNAL, PODS, EXTERNAL],
            [{"type": "External", "external": {"metric": {"name": "q"}, "current": {"value": "8"}}}],
            "8/9, <unknown>/4 + 1 more...",
        ),
    ],
)
def test_tables_show_current_and_wanted_values(metrics: list[Json], statuses: list[Json], cell: str) -> None:
    made = decoded(HORIZONTAL_POD_AUTOSCALERS, {**autoscaler(*metrics), "status": {"currentMetrics": statuses}})
    shown = {column.name: column.cell(made) for column in HORIZONTAL_POD_AUTOSCALERS.columns}
    assert (shown["Reference"], shown["Targets"], shown["MinPods"]) == ("Deployment/d", cell, "1")
