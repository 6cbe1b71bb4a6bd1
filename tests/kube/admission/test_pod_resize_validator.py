"""Resizing pods that have a node."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kube.admission.pod_resize import PodResizeValidator
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

ALLOCATABLE = {"cpu": "2", "memory": "1Gi"}
NODES: dict[str, Json] = {
    "linux": {"metadata": {}, "status": {"allocatable": ALLOCATABLE}},
    "windows": {"metadata": {"labels": {"kubernetes.io/os": "windows"}}, "status": {"allocatable": ALLOCATABLE}},
}


async def _get_node(name: str) -> Json | None:
    return NODES.get(name)


def pod(requests: Json, node: str, generation: int) -> Json:
    container = {"name": "c", "resources": {"requests": requests}}
    return {"metadata": {"generation": generation}, "spec": {"nodeName": node, "containers": [container]}}


def resize(requests: Json, node: str = "linux", *, generation: int = 2, **rest: Any) -> Attributes:
    return Attributes(
        operation=Operation.UPDATE,
        kind=GroupVersionKind("", "v1", "Pod"),
        resource=GroupVersionResource("", "v1", "pods"),
        subresource=rest.get("subresource", "resize"),
        namespace="n",
        name="p",
        user=User("u"),
        obj=pod(requests, node, generation),
        old=pod({}, node, 1),
    )


@pytest.mark.parametrize(
    "allowed",
    [
        resize({"cpu": "2", "memory": "1Gi"}),
        resize({"cpu": "9"}, node=""),
        resize({"cpu": "9"}, generation=1),
        resize({"cpu": "9"}, subresource=""),
    ],
)
async def test_pods_grow_as_far_as_their_node_reaches(allowed: Attributes) -> None:
    await PodResizeValidator(_get_node).validate(allowed)


@pytest.mark.parametrize(
    ("refused", "why", "causes"),
    [
        (
            resize({"cpu": "3", "memory": "2Gi"}),
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000; "
            "memory, requested: 2147483648, allocatable: 1073741824",
            [{"reason": "NodeCapacity"}],
        ),
        (
            resize({"cpu": "1"}, "windows"),
            'pod resize is only supported on linux nodes, node "windows" is "windows"',
            [{"reason": "UnsupportedPlatform"}],
        ),
        (resize({"cpu": "1"}, "gone"), 'node "gone" not found', None),
    ],
)
async def test_pods_that_their_node_can_not_hold_are_not_resized(
    refused: Attributes, why: str, causes: list[Json] | None
) -> None:
    with pytest.raises(Forbidden) as caught:
        await PodResizeValidator(_get_node).validate(refused)
    assert caught.value.message == f'pods "p" is forbidden: {why}'
    assert (caught.value.details or {}).get("causes") == causes
