"""How much of what pods, services, claims and everything else use."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.kinds.resources import ResourceList
from pilothouse.kube.admission.quota.evaluators import (
    ClaimEvaluator,
    CountEvaluator,
    DeviceClaimEvaluator,
    ServiceEvaluator,
)
from pilothouse.kube.admission.quota.pods import PodEvaluator
from pilothouse.machinery.names import GroupResource, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


def shown(used: ResourceList) -> dict[str, str]:
    return {name: str(amount) for name, amount in used.items()}


def pod(requests: Json | None = None, limits: Json | None = None, **spec: Any) -> Json:
    container = {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return {"metadata": {}, "spec": {"containers": [container], **spec}}


PODS = PodEvaluator(lambda: datetime(2024, 1, 1, tzinfo=UTC))


def test_a_pod_uses_what_it_requests_with_its_overhead() -> None:
    requests = {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "1", "odd": "1"}
    obj = pod(requests, {"cpu": "2"}, overhead={"cpu": "100m", "memory": "1Mi"})
    assert shown(PODS.usage(obj)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1100m",
        "requests.cpu": "1100m",
        "limits.cpu": "2100m",
        "memory": "1Mi",
        "requests.memory": "1Mi",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.example.com/gpu": "1",
    }


@pytest.mark.parametrize(
    "ended",
    [
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
        {"metadata": {"deletionTimestamp": "2023-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}},
    ],
)
def test_a_pod_that_has_ended_only_counts(ended: Json) -> None:
    assert shown(PODS.usage(pod({"cpu": "1"}) | ended)) == {"count/pods": "1"}


def test_a_pod_that_is_still_ending_uses_what_it_did() -> None:
    ending = {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}
    assert "cpu" in PODS.usage(pod({"cpu": "1"}) | ending)


@pytest.mark.parametrize(("reason", "cpu"), [("Deferred", "4"), ("Infeasible", "3")])
def test_a_pod_that_is_resized_uses_the_greatest_of_what_it_has_and_wants(reason: str, cpu: str) -> None:
    status = {
        "containerStatuses": [
            {"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}
        ],
        "conditions": [{"type": "PodResizePending", "reason": reason}],
    }
    assert shown(PODS.usage(pod({"cpu": "4"}) | {"status": status}))["cpu"] == cpu


def test_where_cpu_or_memory_is_limited_every_container_says_what_it_wants() -> None:
    obj = pod({"cpu": "1"}, initContainers=[{"name": "i"}])
    assert PODS.missing(["requests.cpu", "limits.memory", "pods"], obj) == (
        "must specify limits.memory for: c,i; requests.cpu for: i"
    )
    assert PODS.missing(["requests.cpu"], pod(resources={"requests": {"cpu": "1"}})) == ""


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ({"scopeName": "Terminating"}, pod(activeDeadlineSeconds=5), pod()),
        ({"scopeName": "NotTerminating"}, pod(), pod(activeDeadlineSeconds=0)),
        ({"scopeName": "BestEffort"}, pod(), pod({"cpu": "1"})),
        ({"scopeName": "NotBestEffort"}, pod({"cpu": "1"}), pod()),
        ({"scopeName": "PriorityClass", "operator": "Exists"}, pod(priorityClassName="a"), pod()),
        ({"scopeName": "PriorityClass", "operator": "DoesNotExist"}, pod(), pod(priorityClassName="a")),
        (
            {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]},
            pod(priorityClassName="a"),
            pod(priorityClassName="b"),
        ),
        (
            {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["a"]},
            pod(),
            pod(priorityClassName="a"),
        ),
        (
            {"scopeName": "CrossNamespacePodAffinity"},
            pod(
                affinity={
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"podAffinityTerm": {"namespaceSelector": {}}}
                        ]
                    }
                }
            ),
            pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        ),
    ],
)
def test_scopes_tell_pods_apart(scope: Json, inside: Json, outside: Json) -> None:
    assert PODS.in_scope(scope, inside)
    assert not PODS.in_scope(scope, outside)


@pytest.mark.parametrize(
    ("spec", "ports", "balancers"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{}]}, "1", "1"),
        (
            {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{}, {"nodePort": 30000}]},
            "1",
            "1",
        ),
    ],
)
def test_services_use_node_ports_and_load_balancers(spec: Json, ports: str, balancers: str) -> None:
    used = shown(ServiceEvaluator().usage({"spec": spec}))
    assert (used["services.nodeports"], used["services.loadbalancers"]) == (ports, balancers)
    assert used["services"] == used["count/services"] == "1"


def test_claims_use_whole_bytes_altogether_and_by_class() -> None:
    obj: Json = {"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}}}
    assert shown(ClaimEvaluator().usage(obj)) == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "2",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
    }
    obj["status"] = {"allocatedResources": {"storage": "5"}}
    assert shown(ClaimEvaluator().usage(obj))["requests.storage"] == "5"
    names = ["pods", "gold.storageclass.storage.k8s.io/requests.storage", "requests.storage"]
    assert ClaimEvaluator().matching(names) == sorted(names[1:])


def test_claims_are_in_scope_by_every_attributes_class_that_they_touch() -> None:
    scope = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["a"]}
    evaluator = ClaimEvaluator()
    assert evaluator.in_scope(scope, {"status": {"currentVolumeAttributesClassName": "a"}})
    assert not evaluator.in_scope(scope, {"spec": {}})
    assert evaluator.in_scope(scope | {"operator": "DoesNotExist"}, {"spec": {}})


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        (GroupResource("", "secrets"), {"count/secrets", "secrets"}),
        (GroupResource("apps", "deployments"), {"count/deployments.apps"}),
        (GroupResource("example.com", "secrets"), {"count/secrets.example.com"}),
    ],
)
def test_everything_else_is_counted(resource: GroupResource, names: set[str]) -> None:
    assert CountEvaluator(resource).usage({}).keys() == names


def _write(operation: Operation, subresource: str = "", obj: Json | None = None, old: Json | None = None) -> Attributes:
    return Attributes(
        operation=operation,
        kind=GroupVersionKind("", "v1", "Pod"),
        resource=GroupVersionResource("", "v1", "pods"),
        subresource=subresource,
        namespace="n",
        name="x",
        user=User("u"),
        obj=obj,
        old=old,
    )


def test_only_writes_that_can_change_what_is_used_are_looked_at() -> None:
    update = Operation.UPDATE
    assert PODS.handles(_write(Operation.CREATE))
    assert not PODS.handles(_write(update, obj=pod(), old=pod()))
    assert PODS.handles(_write(update, obj=pod(activeDeadlineSeconds=1), old=pod()))
    assert PODS.handles(_write(update, "resize"))
    assert not PODS.handles(_write(update, "status"))
    assert ServiceEvaluator().handles(_write(update))
    assert ClaimEvaluator().handles(_write(update, "status"))
    assert not CountEvaluator(GroupResource("", "secrets")).handles(_write(update))


def test_a_resource_claim_uses_devices_by_class_and_by_what_pods_call_them() -> None:
    exactly = {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}}
    all_of = {"exactly": {"deviceClassName": "nic", "allocationMode": "All"}}
    either = [
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
    ]
    claim: Json = {"metadata": {}, "spec": {"devices": {"requests": [exactly, all_of, {"firstAvailable": either}]}}}
    evaluator = DeviceClaimEvaluator(lambda: {"gpu": "example.com/gpu"})
    by_class = {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "5",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }
    assert shown(evaluator.usage(claim)) == {
        **by_class,
        "requests.deviceclass.resource.kubernetes.io/gpu": "5",
        "requests.deviceclass.resource.kubernetes.io/nic": "32",
        "requests.example.com/gpu": "5",
    }
    made_for_pod = {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}}
    assert shown(evaluator.usage(claim | {"metadata": made_for_pod})) == by_class
    names = [*by_class, "requests.example.com/gpu", "requests.example.com/other", "pods"]
    assert evaluator.matching(names) == sorted([*by_class, "requests.example.com/gpu"])


def test_a_pod_uses_devices_that_it_asks_for_by_their_class() -> None:
    name = "deviceclass.resource.kubernetes.io/gpu"
    assert shown(PODS.usage(pod({name: "2"})))[f"requests.{name}"] == "2"
    assert PODS.matching([f"requests.{name}"]) == [f"requests.{name}"]
