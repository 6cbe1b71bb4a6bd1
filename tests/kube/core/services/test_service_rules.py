"""What services may say: defaults, refusals, warnings, and what a change of type drops."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.services.resource import SERVICES, ServiceStatusStrategy
from pilothouse.machinery.objects import Json

PORT: Json = {"port": 80}


def service(**spec: Any) -> Json:
    return {"spec": {"ports": [PORT], **spec}}


def allocated(**spec: Any) -> Json:
    """A service as it is when its addresses have been allocated."""
    return service(
        clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", **spec
    )


def balancer(**spec: Any) -> Json:
    return allocated(type="LoadBalancer", **spec)


def dual(*, ips: int = 2, families: int = 2, policy: str = "PreferDualStack", ip: str = "10.0.0.5") -> Json:
    return service(
        clusterIP=ip,
        clusterIPs=[ip, "fd00::5"][:ips],
        ipFamilies=["IPv4", "IPv6"][:families],
        ipFamilyPolicy=policy,
    )


def test_an_empty_service_gets_its_defaults() -> None:
    assert decoded(SERVICES, service())["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    }


@pytest.mark.parametrize(
    ("spec", "defaults"),
    [
        ({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
        ({"type": "LoadBalancer"}, {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True}),
        ({"externalIPs": ["1.2.3.4"]}, {"externalTrafficPolicy": "Cluster"}),
        ({"sessionAffinity": "ClientIP"}, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}),
    ],
)
def test_defaults_depend_on_the_service_type(spec: Json, defaults: Json) -> None:
    made = decoded(SERVICES, service(**spec))["spec"]
    assert {name: made[name] for name in defaults} == defaults


def test_service_defaults_are_idempotent() -> None:
    made = decoded(SERVICES, service(type="LoadBalancer", sessionAffinity="ClientIP"))
    assert decoded(SERVICES, made)["spec"] == made["spec"]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"ports": []}, ["spec.ports: Required value"]),
        ({"ports": [{"port": 1}, {"port": 2}]}, ["spec.ports[0].name: Required value", "spec.ports[1].name: Required"]),
        ({"ports": [{"port": 1, "appProtocol": "a b"}]}, ['spec.ports[0].appProtocol: Invalid value: "a b"']),
        ({"type": "Funny"}, ['spec.type: Unsupported value: "Funny"']),
        ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
        (
            {"type": "ExternalName", "externalName": "a.b", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"},
            [
                "spec.ipFamilies: Forbidden: may not be set for ExternalName services",
                "spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
            ],
        ),
        ({"externalTrafficPolicy": "Local"}, ['spec.externalTrafficPolicy: Invalid value: "Local": may only be set']),
        ({"healthCheckNodePort": 30000}, ["spec.healthCheckNodePort: Invalid value: 30000: may only be set when"]),
        ({"loadBalancerClass": "a/b"}, ["spec.loadBalancerClass: Forbidden: may only be used when `type` is"]),
        ({"externalIPs": ["0.0.0.0"]}, ['spec.externalIPs[0]: Invalid value: "0.0.0.0": may not be unspecified']),
        ({"trafficDistribution": "PreferSameNode"}, []),
        ({"clusterIP": "10.0.0.1"}, ["spec.clusterIPs: Required value"]),
        ({"clusterIPs": ["10.0.0.1"]}, ['spec.clusterIPs: Invalid value: ["10.0.0.1"]: must be empty when']),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]},
            ['spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2"]: may specify no more than one IP for each IP'],
        ),
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv6"]},
            ['spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`'],
        ),
        (
            {"clusterIP": "a", "clusterIPs": ["a", "b", "c"]},
            [
                'spec.clusterIPs[0]: Invalid value: "a": must be a valid IP address',
                'spec.clusterIPs[1]: Invalid value: "b": must be a valid IP address',
                'spec.clusterIPs[2]: Invalid value: "c": must be a valid IP address',
                'spec.clusterIPs: Invalid value: ["a","b","c"]: may only hold up to 2 values',
            ],
        ),
        (
            {
                "ports": [{"port": 1, "name": "a", "nodePort": 30000}, {"port": 2, "name": "b", "nodePort": 30000}],
                "type": "NodePort",
            },
            ["spec.ports[1].nodePort: Duplicate value: 30000"],
        ),
        ({"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 "]}, []),
    ],
)
def test_new_service_is_rejected_with_exact_errors(spec: Json, errors: list[str]) -> None:
    found = refusals(SERVICES, service(**spec))
    assert [error[: len(wanted)] for error, wanted in zip(found, errors, strict=True)] == errors


def test_source_ranges_may_also_come_from_the_annotation() -> None:
    obj = service(type="LoadBalancer")
    obj["metadata"] = {"annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8, x"}}
    path = "metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"
    (error,) = refusals(SERVICES, obj)
    assert error.startswith(f'{path}: Invalid value: "x": must be a valid CIDR value')


def test_the_two_topology_annotations_must_agree() -> None:
    obj = service()
    hints, mode = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    obj["metadata"] = {"annotations": {hints: "Auto", mode: "Disabled"}}
    why = f"must match annotations[{hints}] when both are specified"
    assert refusals(SERVICES, obj) == [f'metadata.annotations[{mode}]: Invalid value: "Disabled": {why}']
    assert list(SERVICES.strategy.warnings_on_create(decoded(SERVICES, obj))) == [
        f"annotation {hints} is deprecated, please use {mode} instead"
    ]


@pytest.mark.parametrize(
    ("new", "old", "errors"),
    [
        (dual(), dual(), []),
        (dual(ip="10.0.0.6"), dual(), ['spec.clusterIPs[0]: Invalid value: ["10.0.0.6","fd00::5"]: may not']),
        (
            dual(ips=1, families=1),
            dual(),
            [
                "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing "
                "the secondary clusterIP",
                "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing "
                "the secondary ipFamily",
            ],
        ),
        (dual(ips=1, families=1, policy="SingleStack"), dual(), []),
        (dual(), dual(ips=1, families=1), []),
        (balancer(loadBalancerClass="a/b"), balancer(), ['spec.loadBalancerClass: Invalid value: "a/b": may not']),
        (
            balancer(externalTrafficPolicy="Local", healthCheckNodePort=30001),
            balancer(externalTrafficPolicy="Local", healthCheckNodePort=30000),
            ["spec.healthCheckNodePort: Forbidden: field is immutable"],
        ),
    ],
)
def test_an_update_may_only_change_the_second_stack(new: Json, old: Json, errors: list[str]) -> None:
    found = update_refusals(SERVICES, new, old)
    assert [error[: len(wanted)] for error, wanted in zip(found, errors, strict=True)] == errors


def _updated(new: Json, old: Json) -> Json:
    made, before = decoded(SERVICES, new), decoded(SERVICES, old)
    SERVICES.strategy.prepare_for_update(made, before)
    spec: Json = made["spec"]
    return spec


def test_change_to_external_name_drops_addresses_and_ports() -> None:
    ports = [{"port": 80, "nodePort": 30000}]
    old = balancer(ports=ports, externalTrafficPolicy="Local", healthCheckNodePort=30001, loadBalancerClass="a/b")
    new = {"spec": {**decoded(SERVICES, old)["spec"], "type": "ExternalName", "externalName": "a.b"}}
    spec = _updated(new, old)
    assert set(spec) == {"type", "externalName", "ports", "sessionAffinity", "internalTrafficPolicy"}
    assert "nodePort" not in spec["ports"][0]


def test_fields_changed_with_the_type_are_kept_and_rejected() -> None:
    old = allocated(type="NodePort", ports=[{"port": 80, "nodePort": 30000}])
    new = allocated(ports=[{"port": 80, "nodePort": 30009}])
    assert _updated(new, old)["ports"][0]["nodePort"] == 30009
    assert update_refusals(SERVICES, new, old) == [
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"
    ]


def test_an_external_name_is_stored_without_a_traffic_policy() -> None:
    made = decoded(SERVICES, {"spec": {"type": "ExternalName", "externalName": "a", "internalTrafficPolicy": "Local"}})
    SERVICES.strategy.canonicalize(made)
    assert "internalTrafficPolicy" not in made["spec"]


def test_change_of_type_clears_the_load_balancer_status() -> None:
    old = decoded(SERVICES, balancer())
    old["status"] = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}, "conditions": []}
    new = decoded(SERVICES, allocated())
    SERVICES.strategy.prepare_for_update(new, old)
    assert new["status"] == {"loadBalancer": {}, "conditions": []}
    assert old["status"]["loadBalancer"]["ingress"]


@pytest.mark.parametrize(
    ("point", "errors"),
    [
        ({"ip": "1.2.3.4", "ipMode": "VIP"}, []),
        ({"ip": "1.2.3.4"}, ["ipMode: Required value: must be specified when `ip` is set"]),
        ({"hostname": "a.b", "ipMode": "VIP"}, ["ipMode: Forbidden: may not be specified when `ip` is not set"]),
        ({"ip": "1.2.3.4", "ipMode": "X"}, ['ipMode: Unsupported value: "X": supported values: "Proxy", "VIP"']),
        ({"hostname": "1.2.3.4"}, ['hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address']),
    ],
)
def test_a_load_balancer_reports_addresses_with_a_mode(point: Json, errors: list[str]) -> None:
    old = decoded(SERVICES, balancer())
    old["metadata"]["resourceVersion"] = "1"
    new = {**old, "status": {"loadBalancer": {"ingress": [point]}}}
    found = map(str, ServiceStatusStrategy().validate_update(new, old))
    assert list(found) == [f"status.loadBalancer.ingress[0].{error}" for error in errors]


@pytest.mark.parametrize(
    ("obj", "shown"),
    [
        (allocated(), "<none>"),
        (allocated(externalIPs=["1.1.1.1", "2.2.2.2"]), "1.1.1.1,2.2.2.2"),
        (balancer(), "<pending>"),
        ({**balancer(), "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.1.1.1"}]}}}, "1.1.1.1,h"),
        ({"spec": {"type": "ExternalName", "externalName": "a.b"}}, "a.b"),
    ],
)
def test_table_shows_external_addresses(obj: Json, shown: str) -> None:
    column = next(each for each in SERVICES.columns if each.name == "External-IP")
    assert column.cell(decoded(SERVICES, obj)) == shown


def test_a_table_shows_ports_with_their_node_ports() -> None:
    obj = allocated(ports=[{"port": 53, "protocol": "UDP"}, {"port": 80, "nodePort": 30080}])
    column = next(each for each in SERVICES.columns if each.name == "Port(s)")
    assert column.cell(decoded(SERVICES, obj)) == "53/UDP,80:30080/TCP"
