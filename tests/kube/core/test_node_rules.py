"""What nodes may say, what the server adds to them, and what of them may change."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.nodes.resource import NODES, NodeStatusStrategy
from pilothouse.machinery.objects import Json


def node(spec: Json | None = None, status: Json | None = None, **meta: Any) -> Json:
    return {"metadata": {"name": "n", **meta}, "spec": spec or {}, "status": status or {}}


def cell(obj: Json, name: str) -> Any:
    return next(column for column in NODES.columns if column.name == name).cell(decoded(NODES, obj))


def test_allocatable_defaults_to_capacity_rounded_to_thousandths() -> None:
    made = decoded(NODES, node(status={"capacity": {"cpu": "1.0001"}}))
    assert made["status"]["allocatable"] == made["status"]["capacity"] == {"cpu": "1001m"}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"podCIDR": "10.0.0.0/24"}, ["10.0.0.0/24"]),
        ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ["10.0.0.0/24", "fd00::/64"]),
        ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ["10.1.0.0/24"]),
    ],
)
def test_pod_cidr_wins_over_different_pod_cidrs(sent: Json, kept: list[str]) -> None:
    spec = decoded(NODES, node(sent))["spec"]
    assert (spec["podCIDR"], spec["podCIDRs"]) == (kept[0], kept)


def test_taints_are_unique_by_key_and_effect() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    assert refusals(NODES, node({"taints": [taint, {**taint, "effect": "NoExecute"}]})) == []
    assert refusals(NODES, node({"taints": [taint, {**taint, "value": "v"}]})) == [
        'metadata.taints[1]: Duplicate value: {"Key":"k","Value":"v","Effect":"NoSchedule","TimeAdded":null}: '
        "taints must be unique by key and effect pair"
    ]


def test_taint_with_unknown_effect_is_invalid() -> None:
    assert refusals(NODES, node({"taints": [{"key": "k"}, {"key": "l", "effect": "Odd"}]})) == [
        "metadata.taints[0].effect: Required value",
        'metadata.taints[1].effect: Unsupported value: "Odd": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ]


@pytest.mark.parametrize(
    ("cidrs", "why"),
    [
        (["10.0.0.0/24", "10.1.0.0/24"], "may specify no more than one CIDR for each IP family"),
        (["10.0.0.0/24", "fd00::/64", "fd01::/64"], "may specify no more than one CIDR for each IP family"),
        (["ten"], "must be a valid CIDR value"),
    ],
)
def test_pod_cidrs_have_one_range_per_ip_family(cidrs: list[str], why: str) -> None:
    found = refusals(NODES, node({"podCIDRs": cidrs}))
    assert len(found) == 1
    assert why in found[0]


def test_amounts_are_not_negative_and_pods_are_whole() -> None:
    assert refusals(NODES, node(status={"capacity": {"cpu": "-1", "pods": "1.5"}, "allocatable": {"cpu": "1"}})) == [
        'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
        'status.capacity.pods: Invalid value: "1500m": must be an integer',
    ]


def test_declared_features_are_named_sorted_and_unique() -> None:
    found = refusals(NODES, node(status={"declaredFeatures": ["B", "A", "A", "x"]}))
    assert [line.split(":")[0] for line in found] == [
        "status.declaredFeatures[1]",
        "status.declaredFeatures[2]",
        "status.declaredFeatures[3]",
    ]


def test_annotations_of_older_clients_are_validated() -> None:
    taints = {"scheduler.alpha.kubernetes.io/taints": '[{"key":"k"}]'}
    assert refusals(NODES, node(annotations=taints)) == [
        "metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value"
    ]
    broken = {"scheduler.alpha.kubernetes.io/preferAvoidPods": "[]"}
    assert refusals(NODES, node(annotations=broken)) == [
        'metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": '
        "json: cannot unmarshal array into Go value of type v1.AvoidPods"
    ]


@pytest.mark.parametrize(
    ("field", "before", "after", "why"),
    [
        ("providerID", "a://1", "a://2", 'node updates may not change providerID except from "" to valid'),
        ("podCIDRs", ["10.0.0.0/24"], ["10.1.0.0/24"], 'node updates may not change podCIDR except from "" to valid'),
        ("externalID", "", "e", "may not be updated"),
    ],
)
def test_provider_id_and_pod_cidrs_are_immutable_once_set(field: str, before: Any, after: Any, why: str) -> None:
    found = update_refusals(NODES, node({field: after}), node({field: before}))
    assert found == [f"spec.{field}: Forbidden: {why}"]
    assert update_refusals(NODES, node({field: before}), node({field: before})) == []


def test_provider_id_and_pod_cidrs_may_be_set_later() -> None:
    assert update_refusals(NODES, node({"providerID": "a://1", "podCIDRs": ["10.0.0.0/24"]}), node()) == []


def test_node_addresses_are_unique() -> None:
    addresses = [{"type": "Hostname", "address": "h"}, {"type": "Hostname", "address": "h"}]
    new, old = decoded(NODES, node(status={"addresses": addresses})), decoded(NODES, node())
    for obj in (new, old):
        obj["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert list(map(str, NodeStatusStrategy().validate_update(new, old))) == [
        'status.addresses[1]: Duplicate value: {"Type":"Hostname","Address":"h"}'
    ]


def test_spec_and_status_are_written_separately() -> None:
    old, new = decoded(NODES, node({"unschedulable": True})), decoded(NODES, node(status={"phase": "Running"}))
    NodeStatusStrategy().prepare_for_update(new, old)
    assert new["spec"] == {"unschedulable": True}
    assert new["status"]["phase"] == "Running"
    newer = decoded(NODES, node(status={"phase": "Pending"}))
    NODES.strategy.prepare_for_update(newer, old)
    assert newer["status"] == old["status"]


def test_config_sources_are_dropped_with_a_warning() -> None:
    made = decoded(NODES, node({"configSource": {"configMap": {"name": "c"}}}))
    NODES.strategy.prepare_for_create(made)
    assert "configSource" not in made["spec"]
    kept = decoded(NODES, node({"configSource": {}}))
    assert list(NODES.strategy.warnings_on_update(kept, kept)) == ["spec.configSource: the feature is removed"]
    assert 'spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil' in (
        update_refusals(NODES, kept, kept)
    )


@pytest.mark.parametrize(
    ("obj", "status", "roles"),
    [
        (node(), "Unknown", "<none>"),
        (node({"unschedulable": True}), "Unknown,SchedulingDisabled", "<none>"),
        (
            node(
                status={"conditions": [{"type": "Ready", "status": "True"}]},
                labels={"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a", "node-role.kubernetes.io/": ""},
            ),
            "Ready",
            "a,b",
        ),
        (node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]}), "NotReady", "<none>"),
    ],
)
def test_the_table_shows_readiness_and_roles(obj: Json, status: str, roles: str) -> None:
    assert (cell(obj, "Status"), cell(obj, "Roles")) == (status, roles)


def test_the_table_shows_addresses_and_the_kernel_with_its_architecture() -> None:
    info = {"kernelVersion": "6.1", "architecture": "arm64"}
    obj = node(status={"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "nodeInfo": info})
    assert (cell(obj, "Internal-IP"), cell(obj, "External-IP")) == ("10.0.0.1", "<none>")
    assert (cell(obj, "Kernel-Version"), cell(obj, "OS-Image")) == ("6.1 (arm64)", "<unknown>")
