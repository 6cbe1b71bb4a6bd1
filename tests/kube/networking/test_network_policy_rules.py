"""What network policies may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.networking.network_policies import NETWORK_POLICIES
from pilothouse.machinery.objects import Json


def policy(**spec: Any) -> Json:
    return {"spec": {"podSelector": {}, **spec}}


def from_block(cidr: str, *excepted: str) -> Json:
    return policy(ingress=[{"from": [{"ipBlock": {"cidr": cidr, "except": list(excepted)}}]}])


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        ({}, ["Ingress"]),
        ({"egress": [{}]}, ["Ingress", "Egress"]),
        ({"egress": [{}], "policyTypes": ["Egress"]}, ["Egress"]),
    ],
)
def test_the_policy_types_follow_from_the_rules(spec: Json, types: list[str]) -> None:
    assert decoded(NETWORK_POLICIES, policy(**spec))["spec"]["policyTypes"] == types


def test_a_port_is_tcp_unless_it_says_otherwise() -> None:
    made = decoded(NETWORK_POLICIES, policy(egress=[{"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}]))
    assert [port["protocol"] for port in made["spec"]["egress"][0]["ports"]] == ["TCP", "UDP"]


@pytest.mark.parametrize(
    ("port", "error"),
    [
        ({"port": 70000}, "port: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ({"port": 10, "endPort": 5}, "endPort: Invalid value: 10: must be greater than or equal to `port`"),
        ({"port": 10, "endPort": 70000}, "endPort: Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ({"endPort": 5}, "endPort: Invalid value: 5: may not be specified when `port` is not specified"),
        ({"port": "a", "endPort": 5}, "endPort: Invalid value: 5: may not be specified when `port` is non-numeric"),
        ({"protocol": "X"}, 'protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"'),
    ],
)
def test_a_port_range_must_be_one(port: Json, error: str) -> None:
    found = refusals(NETWORK_POLICIES, policy(egress=[{"ports": [port]}]))
    assert found == [f"spec.egress[0].ports[0].{error}"]


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (from_block("10.0.0.0/8", "10.1.0.0/16"), []),
        (from_block("fd00::/8", "fd00::/16"), []),
        (from_block("10.0.0.0/8", "10.0.0.0/8"), ['except[0]: Invalid value: "10.0.0.0/8": must be a strict subset']),
        (from_block("10.0.0.0/8", "fd00::/16"), ['except[0]: Invalid value: "fd00::/16": must be a strict subset']),
        (from_block("x", "y"), ['cidr: Invalid value: "x": must be a valid CIDR value']),
        (from_block(""), ["cidr: Required value"]),
    ],
)
def test_an_exception_lies_inside_its_block(obj: Json, errors: list[str]) -> None:
    found = refusals(NETWORK_POLICIES, obj)
    wanted = [f"spec.ingress[0].from[0].ipBlock.{error}" for error in errors]
    assert [error[: len(start)] for error, start in zip(found, wanted, strict=True)] == wanted


def test_a_notation_that_is_stored_already_may_stay_and_is_warned_of() -> None:
    lenient = from_block("10.0.0.1/8")
    path = "spec.ingress[0].from[0].ipBlock.cidr"
    assert refusals(NETWORK_POLICIES, lenient) == [
        f'{path}: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length'
    ]
    assert update_refusals(NETWORK_POLICIES, lenient, lenient) == []
    assert list(NETWORK_POLICIES.strategy.warnings_on_create(decoded(NETWORK_POLICIES, lenient))) == [
        f'{path}: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'
    ]


def test_a_selector_value_that_is_stored_already_may_stay() -> None:
    broken = policy(podSelector={"matchExpressions": [{"key": "k", "operator": "In", "values": ["no good"]}]})
    assert len(refusals(NETWORK_POLICIES, broken)) == 1
    assert update_refusals(NETWORK_POLICIES, broken, broken) == []
