"""One autoscaler through autoscaling/v1 and v2: what one version cannot say travels in annotations."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules import decoded

from pilothouse.kube.autoscaling.horizontalpodautoscalers import HORIZONTAL_POD_AUTOSCALERS
from pilothouse.kube.autoscaling.v1 import BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS, from_v2, to_v2
from pilothouse.machinery.objects import Json

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
amounts = st.sampled_from(["1", "250m", "10Gi"])
selectors = st.sampled_from([{}, {"selector": {"matchLabels": {"a": "b"}}}])
percents = st.integers(1, 100)


def v1(annotations: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    meta = {"name": "x", "namespace": "n", **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}, "status": status or {}}


def annotated(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or {}


@st.composite
def metrics(draw: st.DrawFn) -> Json:
    """A metric as v2 allows it; CPU utilization is left out, because v1 has a field for it."""
    kind = draw(st.sampled_from(["pods", "resource", "containerResource", "object", "external"]))
    target: Json = {"type": "AverageValue", "averageValue": draw(amounts)}
    if kind in ("object", "external") and draw(st.booleans()):
        target = {"type": "Value", "value": draw(amounts)}
    if kind == "containerResource" and draw(st.booleans()):
        target = {"type": "Utilization", "averageUtilization": draw(percents)}
    source: Json = {"target": target}
    if kind in ("resource", "containerResource"):
        source["name"] = draw(st.sampled_from(["memory", "cpu"]))
        source |= {"container": "c"} if kind == "containerResource" else {}
    else:
        source["metric"] = {"name": "m", **draw(selectors)}
        source |= {"describedObject": {"kind": "Service", "name": "s"}} if kind == "object" else {}
    return {"type": kind[0].upper() + kind[1:], kind: source}


@settings(max_examples=60)
@given(st.lists(metrics(), min_size=1, max_size=4), st.none() | percents)
def test_metrics_survive_the_way_through_v1(others: list[Json], percent: int | None) -> None:
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    }
    wanted = [*others, cpu] if percent else others
    stored = decoded(
        HORIZONTAL_POD_AUTOSCALERS, {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": wanted}}
    )
    shown = from_v2(deepcopy(stored))
    assert shown["spec"].get("targetCPUUtilizationPercentage") == percent
    assert to_v2(shown) == stored


def test_an_autoscaler_of_v1_aims_at_four_fifths_of_the_cpu() -> None:
    [metric] = to_v2(v1())["spec"]["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}


def test_the_first_cpu_target_is_the_field_and_further_ones_are_lost() -> None:
    targets = [{"type": "Utilization", "averageUtilization": percent} for percent in (10, 20)]
    sent = [{"type": "Resource", "resource": {"name": "cpu", "target": target}} for target in targets]
    shown = from_v2(v1(metrics=sent))
    assert (shown["spec"]["targetCPUUtilizationPercentage"], annotated(shown)) == (10, {})


def test_behavior_is_shown_with_the_names_of_gos_fields() -> None:
    rules = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}], "tolerance": "100m"}
    shown = from_v2(v1(behavior={"scaleDown": rules}))
    assert annotated(shown)[BEHAVIOR] == (
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":null,'
        '"Policies":[{"Type":"Pods","Value":2,"PeriodSeconds":30}],"Tolerance":"100m"}}'
    )
    assert to_v2(shown)["spec"]["behavior"] == {"scaleDown": rules}


@pytest.mark.parametrize(
    "text", ["no json", "{}", "[]", '{"ScaleUp":{"Policies":3}}', '{"ScaleUp":null,"ScaleDown":null}', "null"]
)
def test_a_behavior_that_is_none_is_passed_over(text: str) -> None:
    stored = to_v2(v1({BEHAVIOR: text}))
    assert "behavior" not in stored["spec"]
    assert annotated(stored) == {}


def test_a_behavior_from_an_annotation_is_whole_when_it_is_stored() -> None:
    stored = to_v2(v1({BEHAVIOR: '{"scaleup":{"selectPolicy":"Min"}}'}))
    assert stored["spec"]["behavior"] == {"scaleUp": {"selectPolicy": "Min"}}
    HORIZONTAL_POD_AUTOSCALERS.strategy.canonicalize(stored)
    assert stored["spec"]["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert stored["spec"]["behavior"]["scaleDown"]["selectPolicy"] == "Max"


@pytest.mark.parametrize("text", ["no json", '[{"type":3}]', "{}"])
def test_metrics_that_are_none_are_passed_over(text: str) -> None:
    stored = to_v2(v1({METRICS: text, "keep": "me"}))
    assert [metric["resource"]["name"] for metric in stored["spec"]["metrics"]] == ["cpu"]
    assert annotated(stored) == {"keep": "me"}


def test_an_average_of_an_object_loses_the_zero_that_v1_must_show() -> None:
    target = {"type": "AverageValue", "averageValue": "5"}
    source = {"describedObject": {"kind": "S", "name": "s"}, "metric": {"name": "m"}, "target": target}
    shown = from_v2(v1(metrics=[{"type": "Object", "object": source}]))
    assert json.loads(annotated(shown)[METRICS])[0]["object"]["targetValue"] == "0"
    assert to_v2(shown)["spec"]["metrics"][0]["object"]["target"] == target


STATUSES: list[Json] = [
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 4, "averageValue": "2"}}},
    {"type": "Pods", "pods": {"metric": {"name": "q"}, "current": {"averageValue": "3"}}},
    {"type": "External", "external": {"metric": {"name": "q"}, "current": {"value": "1", "averageValue": "2"}}},
    {
        "type": "Object",
        "object": {
            "metric": {"name": "q"},
            "current": {"value": "1"},
            "describedObject": {"kind": "S", "name": "s", "apiVersion": "v1"},
        },
    },
    {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "c", "current": {"averageValue": "2"}},
    },
]


def test_the_status_survives_the_way_through_v1() -> None:
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "<R>"}
    status = {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": STATUSES, "conditions": [condition]}
    stored = decoded(HORIZONTAL_POD_AUTOSCALERS, {**v1(), "status": status})
    shown = from_v2(deepcopy(stored))
    assert shown["status"] == {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 4}
    assert annotated(shown).keys() == {CURRENT_METRICS, CONDITIONS}
    assert '"reason":"\\u003cR\\u003e"' in annotated(shown)[CONDITIONS]
    assert to_v2(shown) == stored


def test_a_status_of_v1_alone_says_what_it_can() -> None:
    stored = to_v2(v1(status={"currentReplicas": 1, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 12}))
    resource = {"name": "cpu", "current": {"averageUtilization": 12}}
    assert stored["status"]["currentMetrics"] == [{"type": "Resource", "resource": resource}]


def test_annotations_of_v1_mean_nothing_in_v2() -> None:
    made = decoded(HORIZONTAL_POD_AUTOSCALERS, v1({METRICS: "[]", BEHAVIOR: "{}", "keep": "me"}))
    assert annotated(made) == {"keep": "me"}
