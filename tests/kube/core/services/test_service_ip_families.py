"""Which IP families and addresses a service is given, by what it says and what the cluster has."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded

from pilothouse.kube.core.services.allocation.ip_families import ClusterFamilies, init_ip_families
from pilothouse.kube.core.services.inference import default_on_read, normalize_cluster_ips, patch_allocated_values
from pilothouse.kube.core.services.resource import SERVICES
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.objects import Json

SINGLE = ClusterFamilies.of(("10.0.0.0/24",))
DUAL = ClusterFamilies.of(("fd00::/112", "10.0.0.0/24"))


def service(**spec: Any) -> Json:
    return decoded(SERVICES, {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}})


@pytest.mark.parametrize(
    ("cluster", "spec", "policy", "families"),
    [
        (SINGLE, {}, "SingleStack", ["IPv4"]),
        (DUAL, {}, "SingleStack", ["IPv6"]),
        (SINGLE, {"ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", ["IPv4"]),
        (DUAL, {"ipFamilyPolicy": "PreferDualStack"}, "PreferDualStack", ["IPv6", "IPv4"]),
        (DUAL, {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4"]}, "RequireDualStack", ["IPv4", "IPv6"]),
        (DUAL, {"clusterIP": "10.0.0.5", "clusterIPs": ["10.0.0.5"]}, "SingleStack", ["IPv4"]),
        (SINGLE, {"clusterIP": "None", "clusterIPs": ["None"]}, "SingleStack", ["IPv4"]),
        (SINGLE, {"clusterIP": "None", "clusterIPs": ["None"], "selector": None}, "RequireDualStack", ["IPv4", "IPv6"]),
        (DUAL, {"clusterIP": "None", "clusterIPs": ["None"], "selector": None}, "RequireDualStack", ["IPv6", "IPv4"]),
    ],
)
def test_a_new_service_gets_the_families_it_asks_for(
    cluster: ClusterFamilies, spec: Json, policy: str, families: list[str]
) -> None:
    made = service(**spec)
    init_ip_families(made, None, cluster)
    assert (made["spec"]["ipFamilyPolicy"], made["spec"]["ipFamilies"]) == (policy, families)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"]}, "IPv6 is not configured on this cluster"),
        ({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}, "when multiple IP families are specified"),
    ],
)
def test_families_that_the_cluster_does_not_have_are_refused(spec: Json, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        init_ip_families(service(**spec), None, SINGLE)


BOTH: Json = {
    "clusterIP": "fd00::5",
    "clusterIPs": ["fd00::5", "10.0.0.5"],
    "ipFamilies": ["IPv6", "IPv4"],
    "ipFamilyPolicy": "RequireDualStack",
}


def test_asking_for_one_stack_drops_the_second_address() -> None:
    made = service(**{**BOTH, "ipFamilyPolicy": "SingleStack"})
    init_ip_families(made, service(**BOTH), DUAL)
    assert (made["spec"]["clusterIPs"], made["spec"]["ipFamilies"]) == (["fd00::5"], ["IPv6"])


def test_leaving_the_second_address_out_is_not_enough_to_drop_it() -> None:
    made = service(**{**BOTH, "clusterIPs": ["fd00::5"], "ipFamilies": ["IPv6"]})
    with pytest.raises(Invalid) as refused:
        init_ip_families(made, service(**BOTH), DUAL)
    assert "must be 'SingleStack' to release the secondary cluster IP" in refused.value.message
    assert "must be 'SingleStack' to release the secondary IP family" in refused.value.message


def test_a_preference_for_two_stacks_is_not_acted_on_by_an_unrelated_update() -> None:
    one = {
        "clusterIP": "fd00::5",
        "clusterIPs": ["fd00::5"],
        "ipFamilies": ["IPv6"],
        "ipFamilyPolicy": "PreferDualStack",
    }
    made = service(**one, sessionAffinity="ClientIP")
    init_ip_families(made, service(**one), DUAL)
    assert made["spec"]["ipFamilies"] == ["IPv6"]


@pytest.mark.parametrize(
    ("single", "plural", "wanted"),
    [
        ("10.0.0.5", None, ["10.0.0.5"]),
        ("10.0.0.6", ["10.0.0.5"], ["10.0.0.6"]),
        ("10.0.0.6", ["10.0.0.7"], ["10.0.0.7"]),
        (None, ["10.0.0.5"], None),
    ],
)
def test_cluster_ips_follow_cluster_ip(single: str | None, plural: list[str] | None, wanted: list[str] | None) -> None:
    old = service(clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"])
    new = service(clusterIP=single, clusterIPs=plural)
    normalize_cluster_ips(new, old)
    assert new["spec"].get("clusterIPs") == wanted


def test_reapplied_manifest_keeps_allocated_values() -> None:
    ports = [{"port": 80, "name": "a", "nodePort": 30000}, {"port": 81, "name": "b", "nodePort": 30001}]
    old = service(type="NodePort", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"], ports=ports)
    new = service(
        type="NodePort", ports=[{"port": 82, "name": "b"}, {"port": 80, "name": "a"}, {"port": 83, "name": "c"}]
    )
    patch_allocated_values(new, old)
    assert new["spec"]["clusterIPs"] == ["10.0.0.5"]
    assert [port.get("nodePort") for port in new["spec"]["ports"]] == [30001, 30000, None]


def test_moved_node_port_is_not_patched_twice() -> None:
    old = service(type="NodePort", ports=[{"port": 80, "name": "a", "nodePort": 30000}])
    new = service(type="NodePort", ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b", "nodePort": 30000}])
    patch_allocated_values(new, old)
    assert [port.get("nodePort") for port in new["spec"]["ports"]] == [None, 30000]


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({"clusterIP": "10.0.0.5"}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "None"}, ["IPv6"], "SingleStack"),
        ({"clusterIP": "None", "selector": None}, ["IPv6", "IPv4"], "RequireDualStack"),
    ],
)
def test_a_service_from_before_ip_families_is_completed(spec: Json, families: list[str], policy: str) -> None:
    old = service(**spec)
    default_on_read(old, "IPv6")
    assert (old["spec"]["ipFamilies"], old["spec"]["ipFamilyPolicy"]) == (families, policy)
