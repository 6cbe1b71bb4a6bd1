"""Conversions between versions accept objects from which any part was removed, as server-side apply removes parts."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.kube.autoscaling.v1 import V1_CONVERSION, from_v2
from pilothouse.kube.events.events import from_core, to_core
from pilothouse.kube.resource.v1beta1 import V1BETA1_CONVERSIONS
from pilothouse.machinery.objects import Json

SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
METADATA: Json = {"name": "a", "namespace": "n", "labels": {"a": "b"}, "annotations": {"c": "d"}}
SCALER: Json = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": METADATA,
    "spec": {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
            },
            {
                "type": "Object",
                "object": {
                    "describedObject": {"kind": "Service", "name": "s"},
                    "metric": {"name": "m", "selector": SELECTOR},
                    "target": {"type": "Value", "value": "3"},
                },
            },
            {
                "type": "Pods",
                "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "1"}}},
        ],
        "behavior": {
            "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}], "tolerance": "100m"}
        },
    },
    "status": {
        "currentReplicas": 1,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}}],
        "conditions": [{"type": "Able", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "r"}],
    },
}
CLAIM: Json = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": METADATA,
    "spec": {
        "devices": {
            "requests": [
                {"name": "r", "deviceClassName": "c", "count": 1, "tolerations": [{"key": "k", "operator": "Exists"}]},
                {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]},
            ],
            "constraints": [{"requests": ["r"], "matchAttribute": "a/b"}],
        }
    },
    "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}},
}
SLICE: Json = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceSlice",
    "metadata": {"name": "a"},
    "spec": {
        "driver": "d",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "x",
                "basic": {
                    "attributes": {"a": {"int": 1}},
                    "capacity": {"m": {"value": "1Gi"}},
                    "taints": [{"key": "k"}],
                },
            }
        ],
    },
}
EVENT: Json = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": METADATA,
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "n"},
    "reason": "r",
    "message": "m",
    "source": {"component": "c", "host": "h"},
    "firstTimestamp": "2024-01-01T00:00:00Z",
    "lastTimestamp": "2024-01-01T00:00:00Z",
    "count": 1,
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "series": {"count": 1, "lastObservedTime": "2024-01-01T00:00:00.000000Z"},
    "related": {"kind": "Node", "name": "x"},
}
TEMPLATE: Json = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaimTemplate",
    "metadata": METADATA,
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM["spec"]},
}


def to_stored(plural: str, obj: Json) -> Json:
    conversion = V1BETA1_CONVERSIONS[plural]
    conversion.default(obj)
    return conversion.from_stored(conversion.to_stored(obj))


ROUND_TRIPS: dict[str, tuple[Json, Callable[[Json], Json]]] = {
    "autoscaling/v1": (SCALER, lambda obj: V1_CONVERSION.to_stored(from_v2(obj))),
    "events": (EVENT, lambda obj: to_core(from_core(obj))),
    "claims": (CLAIM, lambda obj: to_stored("resourceclaims", obj)),
    "claim templates": (TEMPLATE, lambda obj: to_stored("resourceclaimtemplates", obj)),
    "slices": (SLICE, lambda obj: to_stored("resourceslices", obj)),
}


def places(value: Any, kept: tuple[str, ...] = ("apiVersion", "kind")) -> list[tuple[Any, Any]]:
    """Return the container and the key of every part within a value, but for the object's own type."""
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    below = [place for _, child in pairs for place in places(child, ())]
    return [(value, key) for key, _ in pairs if key not in kept] + below


@pytest.mark.parametrize("name", ROUND_TRIPS)
@settings(max_examples=200, derandomize=True)
@given(data=st.data())
def test_conversion_of_an_object_with_missing_parts_does_not_fail(name: str, data: st.DataObject) -> None:
    sample, convert = ROUND_TRIPS[name]
    obj = deepcopy(sample)
    for _ in range(data.draw(st.integers(0, 6))):
        if left := places(obj):
            container, key = data.draw(st.sampled_from(left))
            del container[key]
    assert convert(obj)["kind"] == sample["kind"]


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_conversion_of_an_object_without_anything_does_not_fail(name: str) -> None:
    sample, convert = ROUND_TRIPS[name]
    assert convert({"apiVersion": sample["apiVersion"], "kind": sample["kind"]})["kind"] == sample["kind"]
