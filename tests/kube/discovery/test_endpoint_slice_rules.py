"""What endpoint slices may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.machinery.objects import Json


def endpoint_slice(address_type: str = "IPv4", *addresses: str, **fields: Any) -> Json:
    endpoints = [{"addresses": [address]} for address in addresses]
    return {"addressType": address_type, "endpoints": endpoints, **fields}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (endpoint_slice("IPv4", "10.0.0.1"), []),
        (endpoint_slice("IPv6", "fd00::1"), []),
        (endpoint_slice("FQDN", "a.example.com."), []),
        (endpoint_slice(""), ["addressType: Required value"]),
        (endpoint_slice("X"), ['addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"']),
        (
            endpoint_slice("IPv4", "fd00::1"),
            ['endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address'],
        ),
        (
            endpoint_slice("IPv6", "1.2.3.4"),
            ['endpoints[0].addresses: Invalid value: "1.2.3.4": must be an IPv6 address'],
        ),
        (endpoint_slice("IPv4", "0.0.0.0"), ['endpoints[0].addresses[0]: Invalid value: "0.0.0.0": may not be unspec']),
        (endpoint_slice("IPv6", "ff02::1"), ['endpoints[0].addresses[0]: Invalid value: "ff02::1": may not be in the']),
        (endpoint_slice("IPv6", "FD00::1"), ['endpoints[0].addresses[0]: Invalid value: "FD00::1": must be in canon']),
        (endpoint_slice("FQDN", "a"), ['endpoints[0].addresses[0]: Invalid value: "a": should be a domain with at']),
        (
            endpoint_slice(endpoints=[{"addresses": []}]),
            ["endpoints[0].addresses: Required value: must contain at least"],
        ),
        (
            endpoint_slice(endpoints=[{"addresses": ["1.1.1.1"] * 101}]),
            ["endpoints[0].addresses: Too many: 101: must have at most 100 items"],
        ),
        (endpoint_slice(endpoints=[{}] * 1001), ["endpoints: Too many: 1001: must have at most 1000 items"]),
        (
            endpoint_slice(ports=[{"name": "a"}, {"name": "a", "protocol": "X"}, {"appProtocol": "a b"}]),
            [
                'ports[1].name: Duplicate value: "a"',
                'ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
                'ports[2].appProtocol: Invalid value: "a b"',
            ],
        ),
    ],
)
def test_a_new_slice_is_refused_for_exactly_what_is_wrong_with_it(obj: Json, errors: list[str]) -> None:
    found = refusals(ENDPOINT_SLICES, obj)
    assert [error[: len(wanted)] for error, wanted in zip(found, errors, strict=True)] == errors


def test_hints_name_each_zone_and_node_once() -> None:
    hints = {"forZones": [{"name": "z"}, {"name": "z"}], "forNodes": [{"name": "n"}, {"name": "N"}]}
    found = refusals(ENDPOINT_SLICES, endpoint_slice(endpoints=[{"addresses": ["1.1.1.1"], "hints": hints}]))
    assert found[0] == 'endpoints[0].hints.forZones[1].name: Duplicate value: "z"'
    assert found[1].startswith('endpoints[0].hints.forNodes[1].name: Invalid value: "N"')
    assert len(found) == 2


def test_ports_without_a_name_and_a_protocol_get_them() -> None:
    assert decoded(ENDPOINT_SLICES, endpoint_slice(ports=[{"port": 80}]))["ports"] == [
        {"name": "", "port": 80, "protocol": "TCP"}
    ]


def test_the_type_of_the_addresses_never_changes() -> None:
    found = update_refusals(ENDPOINT_SLICES, endpoint_slice("IPv6"), endpoint_slice("IPv4"))
    assert found == ['addressType: Invalid value: "IPv6": field is immutable']


def test_endpoints_that_were_stored_under_older_rules_may_stay_as_they_are() -> None:
    broken = endpoint_slice("IPv4", "010.0.0.1")
    assert update_refusals(ENDPOINT_SLICES, broken, broken) == []
    assert len(update_refusals(ENDPOINT_SLICES, endpoint_slice("IPv4", "010.0.0.1", "10.0.0.2"), broken)) == 1


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({}, 1),
        ({"metadata": {"annotations": {"a": "b"}}}, 1),
        ({"metadata": {"labels": {"a": "b"}}}, 2),
        ({"ports": [{}]}, 2),
    ],
)
def test_everything_but_annotations_makes_a_new_generation(change: Json, generation: int) -> None:
    old = decoded(ENDPOINT_SLICES, endpoint_slice("IPv4", "10.0.0.1"))
    new = decoded(ENDPOINT_SLICES, endpoint_slice("IPv4", "10.0.0.1", **change))
    old["metadata"]["generation"] = new["metadata"]["generation"] = 1
    ENDPOINT_SLICES.strategy.prepare_for_update(new, old)
    assert new["metadata"]["generation"] == generation


def test_a_node_that_the_old_topology_named_becomes_the_node_name() -> None:
    topology = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"kubernetes.io/hostname": "n1"}}
    old = decoded(ENDPOINT_SLICES, endpoint_slice(endpoints=[topology]))
    foreign = {"addresses": ["10.0.0.2"], "deprecatedTopology": {"kubernetes.io/hostname": "n2"}}
    new = decoded(ENDPOINT_SLICES, endpoint_slice(endpoints=[topology, foreign]))
    ENDPOINT_SLICES.strategy.prepare_for_update(new, old)
    assert [endpoint.get("nodeName") for endpoint in new["endpoints"]] == ["n1", None]
    assert not any("deprecatedTopology" in endpoint for endpoint in new["endpoints"])


def test_unusual_notations_are_warned_of_unless_a_controller_wrote_them() -> None:
    obj = decoded(ENDPOINT_SLICES, endpoint_slice("IPv6", "FD00::1"))
    assert list(ENDPOINT_SLICES.strategy.warnings_on_create(obj)) == [
        'endpoints[0].addresses[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")'
    ]
    obj["metadata"]["labels"] = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    assert list(ENDPOINT_SLICES.strategy.warnings_on_create(obj)) == []


@pytest.mark.parametrize(
    ("addresses", "shown"),
    [([], "<unset>"), (["1.1.1.1"], "1.1.1.1"), (["1.1.1.1"] * 5, "1.1.1.1,1.1.1.1,1.1.1.1 + 2 more...")],
)
def test_a_table_shows_three_addresses(addresses: list[str], shown: str) -> None:
    column = next(each for each in ENDPOINT_SLICES.columns if each.name == "Endpoints")
    assert column.cell(decoded(ENDPOINT_SLICES, endpoint_slice("IPv4", *addresses))) == shown
