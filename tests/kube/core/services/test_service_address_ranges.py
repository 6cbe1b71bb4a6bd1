"""The addresses of a CIDR: which there are, and in which order they are tried."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.kube.core.services.ipallocator import AddressRange


def of(cidr: str) -> AddressRange:
    made = AddressRange.of(cidr)
    assert made is not None
    return made


@settings(max_examples=30)
@given(bits=st.integers(min_value=23, max_value=32), seed=st.integers())
def test_every_host_of_a_network_is_tried_once_and_nothing_else(bits: int, seed: int) -> None:
    network = IPv4Network((int(IPv4Address("10.20.30.0")), bits), strict=False)
    hosts = {str(network[n]) for n in range(1, network.num_addresses - 1)}
    tried = list(of(str(network)).candidates(Random(seed)))
    assert len(tried) == len(hosts)
    assert set(tried) == hosts


def test_the_lower_band_is_tried_last() -> None:
    tried = list(of("10.0.0.0/24").candidates(Random(7)))
    assert set(tried[-16:]) == {f"10.0.0.{n}" for n in range(1, 17)}


@pytest.mark.parametrize(
    ("cidr", "lower"),
    [("10.0.0.0/28", 0), ("10.0.0.0/27", 16), ("10.0.0.0/22", 64), ("10.0.0.0/12", 256), ("fd00::/64", 256)],
)
def test_the_lower_band_grows_with_the_network_up_to_a_limit(cidr: str, lower: int) -> None:
    assert of(cidr).lower_band == lower


def test_the_first_candidate_of_a_huge_network_comes_at_once() -> None:
    candidate = next(of("fd00::/64").candidates(Random(1)))
    assert IPv6Address(candidate) in of("fd00::/64")


@pytest.mark.parametrize("address", ["10.0.0.0", "10.0.0.255", "10.0.1.1"])
def test_network_and_broadcast_addresses_are_not_allocatable(address: str) -> None:
    assert IPv4Address(address) not in of("10.0.0.0/24")


@pytest.mark.parametrize("cidr", ["fd00::/63", "nonsense"])
def test_invalid_or_too_large_network_has_no_range(cidr: str) -> None:
    assert AddressRange.of(cidr) is None
