"""Subsets in canonical form, against the pairs of address and port that they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.controllers.endpoint.desired import MAX_CAPACITY, is_same, number_of_addresses, repack, truncated
from pilothouse.machinery.objects import Json

IPS = st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]).map(lambda ip: {"ip": ip}), max_size=3)
PORTS = st.lists(st.sampled_from([{"port": 80}, {"port": 443, "name": "tls"}]), max_size=2)
SUBSETS = st.lists(st.fixed_dictionaries({"addresses": IPS, "notReadyAddresses": IPS, "ports": PORTS}), max_size=5)


def pairs(subsets: Iterable[Json]) -> dict[tuple[str, int], bool]:
    """Whether each address is ready for each port; 0 stands for none."""
    found: dict[tuple[str, int], bool] = {}
    for each in subsets:
        ports = [port["port"] for port in each.get("ports") or ()] or [0]
        for name, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address, port in product(each.get(name) or (), ports):
                key = (address["ip"], port)
                found[key] = found.get(key, True) and ready
    return found


@settings(max_examples=150, deadline=None)
@given(subsets=SUBSETS)
def test_packing_keeps_every_pair_and_does_not_depend_on_the_order(subsets: list[Json]) -> None:
    packed = repack(subsets)
    wanted = pairs(subsets)
    without_ports = {ip for ip, port in wanted if port == 0}
    assert {key for key in pairs(packed) if key[1]} == {key for key in wanted if key[1]}
    assert without_ports <= {ip for ip, _ in pairs(packed)}
    assert is_same(repack(packed), packed)
    assert is_same(repack(reversed(subsets)), packed)


def subset(ready: int, waiting: int, port: int) -> Json:
    return {
        "addresses": [{"ip": f"10.{port}.{number >> 8}.{number & 255}"} for number in range(ready)],
        "notReadyAddresses": [{"ip": f"11.{port}.{number >> 8}.{number & 255}"} for number in range(waiting)],
        "ports": [{"port": port}],
    }


def test_not_ready_addresses_are_truncated_first_and_evenly() -> None:
    cut = truncated([subset(300, 600, 1), subset(300, 300, 2)])
    assert [len(each["addresses"]) for each in cut] == [300, 300]
    assert [len(each["notReadyAddresses"]) for each in cut] == [267, 133]
    assert number_of_addresses(cut) == MAX_CAPACITY


def test_too_many_ready_addresses_drop_all_not_ready_addresses() -> None:
    cut = truncated([subset(1500, 5, 1), subset(500, 0, 2)])
    assert [len(each["addresses"]) for each in cut] == [750, 250]
    assert not any(each.get("notReadyAddresses") for each in cut)


def test_a_subset_of_which_nothing_is_left_goes() -> None:
    cut = truncated([subset(1000, 0, 1), subset(1, 0, 2), subset(0, 5, 3)])
    assert number_of_addresses(cut) == MAX_CAPACITY
    assert [each["ports"] for each in cut] == [[{"port": 1}]]


def test_versions_of_pods_make_no_difference() -> None:
    def at(version: str) -> list[Json]:
        target = {"kind": "Pod", "name": "a", "resourceVersion": version}
        return [{"addresses": [{"ip": "10.0.0.1", "targetRef": target}]}]

    assert is_same(at("1"), at("2"))
    assert not is_same(at("1"), [{"notReadyAddresses": at("1")[0]["addresses"]}])
