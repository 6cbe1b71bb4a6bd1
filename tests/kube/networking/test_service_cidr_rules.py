"""What ServiceCIDRs and IPAddresses may say."""

from __future__ import annotations

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.networking.ip_addresses import IP_ADDRESSES
from pilothouse.kube.networking.service_cidrs import SERVICE_CIDRS, ServiceCIDRStatusStrategy
from pilothouse.machinery.objects import Json


def cidrs(*texts: str) -> Json:
    return {"spec": {"cidrs": list(texts)}}


def address(name: str, **parent: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"parentRef": {"resource": "services", "name": "s", **parent}}}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (cidrs("10.0.0.0/24"), []),
        (cidrs("10.0.0.0/24", "fd00::/64"), []),
        (cidrs(), ["spec.cidrs: Required value: at least one CIDR required"]),
        (cidrs("a", "b", "c"), ['spec.cidrs: Invalid value: {"CIDRs":["a","b","c"]}: may only hold up to 2 values']),
        (
            cidrs("fd00:0::/64"),
            ['spec.cidrs[0]: Invalid value: "fd00:0::/64": must be in canonical form ("fd00::/64")'],
        ),
        (
            cidrs("10.0.0.0/24", "10.1.0.0/24"),
            [
                'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP '
                "family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ],
        ),
    ],
)
def test_a_new_range_has_one_cidr_of_each_family_at_most(obj: Json, errors: list[str]) -> None:
    assert refusals(SERVICE_CIDRS, obj) == errors


@pytest.mark.parametrize(
    ("new", "errors"),
    [
        (cidrs("10.0.0.0/24", "fd00::/64"), []),
        (cidrs("10.1.0.0/24"), ['spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable']),
        (cidrs("10.1.0.0/24", "fd00::/64"), ['spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable']),
        (cidrs(), ["spec.cidrs: Invalid value: []: field is immutable"]),
    ],
)
def test_a_range_only_grows_by_a_second_family(new: Json, errors: list[str]) -> None:
    assert update_refusals(SERVICE_CIDRS, new, cidrs("10.0.0.0/24")) == errors


def test_a_write_of_the_status_changes_neither_labels_nor_spec() -> None:
    old = decoded(SERVICE_CIDRS, cidrs("10.0.0.0/24"))
    new = decoded(SERVICE_CIDRS, {**cidrs("10.1.0.0/24"), "metadata": {"labels": {"a": "b"}}})
    ServiceCIDRStatusStrategy().prepare_for_update(new, old)
    assert "labels" not in new["metadata"]
    assert new["spec"] == old["spec"]


@pytest.mark.parametrize("name", ["10.0.0.1", "fd00::1"])
def test_an_address_is_its_name(name: str) -> None:
    assert refusals(IP_ADDRESSES, address(name)) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("web", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("fd00:0::1", 'must be in canonical form ("fd00::1")'),
    ],
)
def test_a_name_that_is_no_canonical_address_is_refused(name: str, why: str) -> None:
    assert refusals(IP_ADDRESSES, address(name)) == [f'metadata.name: Invalid value: "{name}": {why}']


def test_an_address_never_changes_hands() -> None:
    found = update_refusals(IP_ADDRESSES, address("10.0.0.1", namespace="ns"), address("10.0.0.1"))
    printed = '{"Group":"","Resource":"services","Namespace":"ns","Name":"s"}'
    assert found == [f"spec.parentRef: Invalid value: {printed}: field is immutable"]


def test_an_address_without_a_parent_is_refused() -> None:
    assert refusals(IP_ADDRESSES, {"metadata": {"name": "10.0.0.1"}, "spec": {}}) == ["spec.parentRef: Required value"]


@pytest.mark.parametrize(
    ("parent", "shown"),
    [
        ({"namespace": "ns"}, "services/ns/s"),
        ({"group": "g.io", "resource": "Gates"}, "gates.g.io/s"),
    ],
)
def test_a_table_shows_who_has_an_address(parent: dict[str, str], shown: str) -> None:
    obj = decoded(IP_ADDRESSES, address("10.0.0.1", **parent))
    assert IP_ADDRESSES.columns[1].cell(obj) == shown
