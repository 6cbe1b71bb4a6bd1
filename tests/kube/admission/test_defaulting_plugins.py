"""What admission writes into nodes, volumes, claims and ingresses, and when it lets claims grow."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kube.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from pilothouse.kube.admission.pod_placement import PodTopologyLabels
from pilothouse.kube.admission.tolerations import TaintNodesByCondition
from pilothouse.kube.admission.volumes import PersistentVolumeClaimResize, StorageObjectInUseProtection
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


def write(plural: str, obj: Json, group: str = "", **rest: Any) -> Attributes:
    return Attributes(
        **{
            "operation": Operation.CREATE,
            "kind": GroupVersionKind(group, "v1", "Any"),
            "resource": GroupVersionResource(group, "v1", plural),
            "subresource": "",
            "namespace": "n",
            "name": "x",
            "user": User("u"),
            "obj": obj,
            **rest,
        }
    )


async def test_a_new_node_is_not_ready() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    obj: Json = {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}
    for _ in range(2):
        await TaintNodesByCondition().admit(write("nodes", obj))
    assert obj["spec"]["taints"] == [{"key": "a", "effect": "NoExecute"}, taint]


@pytest.mark.parametrize(
    ("plural", "group", "finalizer"),
    [
        ("persistentvolumes", "", "kubernetes.io/pv-protection"),
        ("persistentvolumeclaims", "", "kubernetes.io/pvc-protection"),
        ("volumeattributesclasses", "storage.k8s.io", "kubernetes.io/vac-protection"),
    ],
)
async def test_storage_in_use_is_protected(plural: str, group: str, finalizer: str) -> None:
    obj: Json = {"metadata": {"finalizers": ["example.com/mine"]}}
    for _ in range(2):
        await StorageObjectInUseProtection().admit(write(plural, obj, group))
    assert obj["metadata"]["finalizers"] == ["example.com/mine", finalizer]


async def test_nothing_else_is_protected() -> None:
    obj: Json = {"metadata": {}}
    await StorageObjectInUseProtection().admit(write("secrets", obj))
    await StorageObjectInUseProtection().admit(write("persistentvolumes", obj, subresource="status"))
    assert obj == {"metadata": {}}


def a_class(name: str, created: str, *, default: bool, of: str) -> Json:
    annotations = {f"{of}.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}}


def classes(of: str) -> Any:
    found = [
        a_class("old", "2024-01-01T00:00:00Z", default=True, of=of),
        a_class("z-new", "2024-01-02T00:00:00Z", default=True, of=of),
        a_class("new", "2024-01-02T00:00:00Z", default=True, of=of),
        a_class("newest", "2024-01-03T00:00:00Z", default=False, of=of),
    ]

    async def listed() -> list[Json]:
        return found

    return listed


async def test_a_claim_without_a_class_gets_the_newest_default() -> None:
    plugin = DefaultStorageClass(classes("storageclass"))
    for spec, expected in (({}, "new"), ({"storageClassName": ""}, ""), ({"storageClassName": "own"}, "own")):
        obj: Json = {"metadata": {}, "spec": dict(spec)}
        await plugin.admit(write("persistentvolumeclaims", obj))
        assert obj["spec"]["storageClassName"] == expected
    annotated: Json = {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}, "spec": {}}
    await plugin.admit(write("persistentvolumeclaims", annotated))
    assert annotated["spec"] == {}


async def test_an_ingress_without_a_class_gets_the_newest_default() -> None:
    plugin = DefaultIngressClass(classes("ingressclass"))
    obj: Json = {"metadata": {}, "spec": {}}
    await plugin.admit(write("ingresses", obj, "networking.k8s.io"))
    assert obj["spec"] == {"ingressClassName": "new"}
    annotated: Json = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "a"}}, "spec": {}}
    await plugin.admit(write("ingresses", annotated, "networking.k8s.io"))
    assert annotated["spec"] == {}


def claim(size: str, phase: str = "Bound", name: str = "grows") -> Json:
    spec = {"storageClassName": name, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": phase}}


async def _get_class(name: str) -> Json | None:
    known: dict[str, Json] = {"grows": {"allowVolumeExpansion": True}, "fixed": {}}
    return known.get(name)


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        (claim("2Gi"), claim("1Gi"), ""),
        (claim("1Gi"), claim("2Gi", "Pending"), ""),
        (claim("2Gi"), claim("1Gi", "Pending"), "Only bound persistent volume claims can be expanded"),
        (claim("2Gi", name="fixed"), claim("1Gi", name="fixed"), "only dynamically provisioned pvc can be resized"),
        (claim("2Gi", name="gone"), claim("1Gi", name="gone"), "only dynamically provisioned pvc can be resized"),
    ],
)
async def test_a_claim_grows_only_where_its_class_allows_it(new: Json, old: Json, why: str) -> None:
    attributes = write("persistentvolumeclaims", new, operation=Operation.UPDATE, old=old)
    plugin = PersistentVolumeClaimResize(_get_class)
    if not why:
        await plugin.validate(attributes)
        return
    with pytest.raises(Forbidden, match=why):
        await plugin.validate(attributes)


async def _get_node(name: str) -> Json | None:
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/rack": "r", "other": "o"}
    return {"metadata": {"labels": labels}} if name == "known" else None


@pytest.mark.parametrize(
    ("obj", "subresource", "labels"),
    [
        ({"spec": {"nodeName": "known"}}, "", {"mine": "m", "topology.kubernetes.io/zone": "z"}),
        ({"spec": {"nodeName": "unknown"}}, "", {"mine": "m"}),
        ({"spec": {}}, "", {"mine": "m"}),
        ({"target": {"kind": "Node", "name": "known"}}, "binding", {"mine": "m", "topology.kubernetes.io/zone": "z"}),
        ({"target": {"kind": "Other", "name": "known"}}, "binding", {"mine": "m"}),
        ({"spec": {"nodeName": "known"}}, "status", {"mine": "m"}),
    ],
)
async def test_a_pod_on_a_node_says_where_the_node_is(obj: Json, subresource: str, labels: Json) -> None:
    pod = {"metadata": {"labels": {"mine": "m"}}, **obj}
    await PodTopologyLabels(_get_node).admit(write("pods", pod, subresource=subresource))
    assert pod["metadata"]["labels"] == labels
