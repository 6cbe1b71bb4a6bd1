"""Limit ranges at work: defaults for containers, bounds for containers, pods and claims."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kube.admission.limit_ranger import ANNOTATION, LimitRanger
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

BOUNDS: Json = {
    "type": "Container",
    "min": {"cpu": "100m"},
    "max": {"cpu": "1"},
    "default": {"cpu": "500m"},
    "defaultRequest": {"cpu": "200m", "memory": "1Mi"},
}


def plugin(*limits: Json) -> LimitRanger:
    async def limit_ranges(namespace: str) -> list[Json]:
        return [{"spec": {"limits": list(limits)}}] if namespace == "limited" else []

    return LimitRanger(limit_ranges)


def container(name: str = "c", limits: Json | None = None, requests: Json | None = None, **rest: Any) -> Json:
    return {"name": name, "resources": {"limits": limits or {}, "requests": requests or {}}, **rest}


def write(obj: Json, kind: str = "Pod", **rest: Any) -> Attributes:
    plural = "pods" if kind == "Pod" else "persistentvolumeclaims"
    return Attributes(
        **{
            "operation": Operation.CREATE,
            "kind": GroupVersionKind("", "v1", kind),
            "resource": GroupVersionResource("", "v1", plural),
            "subresource": "",
            "namespace": "limited",
            "name": "x",
            "user": User("u"),
            "obj": obj,
            **rest,
        }
    )


def pod(*containers: Json, **spec: Any) -> Json:
    return {"metadata": {"name": "x"}, "spec": {"containers": list(containers), **spec}}


async def test_containers_get_what_they_do_not_say_and_the_pod_tells_of_it() -> None:
    obj = pod(container(limits={"cpu": "1"}), initContainers=[container("i")])
    await plugin(BOUNDS).admit(write(obj))
    (main,), (init,) = obj["spec"]["containers"], obj["spec"]["initContainers"]
    assert main["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "200m", "memory": "1Mi"}}
    assert init["resources"]["limits"] == {"cpu": "500m"}
    assert obj["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory request for container c; "
        "cpu, memory request for init container i; cpu limit for init container i"
    )


async def test_a_pod_that_says_everything_is_left_as_it_is() -> None:
    obj = pod(container(limits={"cpu": "1"}, requests={"cpu": "1", "memory": "1"}))
    await plugin(BOUNDS).admit(write(obj))
    assert "annotations" not in obj["metadata"]


async def refusal(obj: Json, *limits: Json, kind: str = "Pod", **rest: Any) -> str:
    try:
        await plugin(*limits).validate(write(obj, kind, **rest))
    except Forbidden as error:
        return error.message.partition(": ")[2]
    return ""


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (container(limits={"cpu": "1"}, requests={"cpu": "1"}), ""),
        (
            container(limits={"cpu": "1"}),
            "minimum cpu usage per Container is 100m.  No request is specified",
        ),
        (
            container(limits={"cpu": "1"}, requests={"cpu": "50m"}),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (container(requests={"cpu": "100m"}), "maximum cpu usage per Container is 1.  No limit is specified"),
        (
            container(limits={"cpu": "2"}, requests={"cpu": "100m"}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
    ],
)
async def test_containers_stay_inside_the_bounds(asked: Json, why: str) -> None:
    assert await refusal(pod(asked), BOUNDS) == why


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (container(limits={"cpu": "2"}, requests={"cpu": "1"}), ""),
        (
            container(limits={"cpu": "3"}, requests={"cpu": "1"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            container(limits={"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
    ],
)
async def test_limits_are_not_too_far_above_requests(asked: Json, why: str) -> None:
    assert await refusal(pod(asked), {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}) == why


async def test_a_pod_is_the_sum_of_its_containers_or_what_it_says_as_a_whole() -> None:
    most: Json = {"type": "Pod", "max": {"cpu": "2"}}
    two = [container(limits={"cpu": "1500m"}), container("d", limits={"cpu": "1500m"})]
    assert await refusal(pod(*two), most) == "maximum cpu usage per Pod is 2, but limit is 3"
    assert await refusal(pod(*two, resources={"limits": {"cpu": "2"}}), most) == ""
    started = pod(container(limits={"cpu": "1"}), initContainers=[container("i", limits={"cpu": "2"})])
    assert await refusal(started, most) == ""


async def test_claims_ask_for_no_more_and_no_less() -> None:
    bounds: Json = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    for size, why in (
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ("2Gi", ""),
        ("3Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"),
    ):
        obj = {"spec": {"resources": {"requests": {"storage": size}}}}
        assert await refusal(obj, bounds, kind="PersistentVolumeClaim") == why


@pytest.mark.parametrize(
    "rest",
    [
        {"operation": Operation.UPDATE},
        {"operation": Operation.UPDATE, "subresource": "status"},
        {"namespace": "free"},
        {"operation": Operation.UPDATE, "subresource": "resize", "old": {"metadata": {"deletionTimestamp": "t"}}},
    ],
)
async def test_only_new_and_resized_pods_in_limited_namespaces_are_looked_at(rest: Json) -> None:
    obj = pod(container(limits={"cpu": "9"}, requests={"cpu": "9"}))
    assert await refusal(obj, BOUNDS, **rest) == ""
    resized: Json = {"operation": Operation.UPDATE, "subresource": "resize", "old": {"metadata": {}}}
    assert await refusal(obj, BOUNDS, **resized) != ""
