"""IP addresses and CIDRs are accepted and refused as upstream does."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.field import root
from pilothouse.machinery.validation.addresses import (
    format_ip,
    is_valid_cidr,
    is_valid_cidr_for_legacy_field,
    is_valid_ip,
    is_valid_ip_for_legacy_field,
    parse_cidr_sloppy,
    parse_ip_sloppy,
)

AT = root("ip")


@pytest.mark.parametrize(
    ("value", "lenient", "legacy", "strict"),
    [
        ("10.9.8.7", True, True, True),
        ("2001:db8::ffff", True, True, True),
        ("2001:DB8::0001", True, True, False),
        ("010.009.8.7", True, False, False),
        ("::ffff:1.2.3.4", True, False, False),
        ("10.0.0.256", False, False, False),
        ("10.0.0", False, False, False),
        ("fe80::1%eth0", False, False, False),
        ("::ffff:1.2.3", False, False, False),
        ("", False, False, False),
    ],
)
def test_an_address_is_judged_by_the_age_of_its_field(value: str, lenient: bool, legacy: bool, strict: bool) -> None:
    assert (not list(is_valid_ip_for_legacy_field(AT, value, strict=False))) is lenient
    assert (not list(is_valid_ip_for_legacy_field(AT, value))) is legacy
    assert (not list(is_valid_ip(AT, value))) is strict


@pytest.mark.parametrize(
    ("value", "lenient", "legacy", "strict"),
    [
        ("10.9.8.0/24", True, True, True),
        ("2001:db8::/64", True, True, True),
        ("2001:DB8::/64", True, True, False),
        ("10.9.8.7/24", True, False, False),
        ("10.9.08.0/24", True, False, False),
        ("10.9.8.0/024", True, False, False),
        ("::ffff:1.2.3.0/120", True, False, False),
        ("10.9.8.0/33", False, False, False),
        ("10.9.8.0", False, False, False),
        ("10.9.8.0/", False, False, False),
        ("10.9.8.0/-1", False, False, False),
    ],
)
def test_a_cidr_is_judged_by_the_age_of_its_field(value: str, lenient: bool, legacy: bool, strict: bool) -> None:
    assert (not list(is_valid_cidr_for_legacy_field(AT, value, strict=False))) is lenient
    assert (not list(is_valid_cidr_for_legacy_field(AT, value))) is legacy
    assert (not list(is_valid_cidr(AT, value))) is strict


def test_refusals_have_upstreams_words() -> None:
    assert [str(error) for error in is_valid_ip(AT, "2001:DB8::0001")] == [
        'ip: Invalid value: "2001:DB8::0001": must be in canonical form ("2001:db8::1")'
    ]
    assert [str(error) for error in is_valid_ip(AT, "1.2.3")] == [
        'ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
    ]
    assert [str(error) for error in is_valid_cidr(AT, "10.0.0.1/8")] == [
        'ip: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length'
    ]


def test_a_value_that_was_there_before_may_stay() -> None:
    assert list(is_valid_ip_for_legacy_field(AT, "010.0.0.1", old=["010.0.0.1"])) == []
    assert list(is_valid_cidr_for_legacy_field(AT, "10.0.0.1/8", old=["10.0.0.1/8"])) == []


def test_an_address_mapped_into_ipv6_prints_as_ipv4() -> None:
    mapped = parse_ip_sloppy("::ffff:1.2.3.4")
    assert mapped is not None
    assert format_ip(mapped) == "1.2.3.4"


@given(st.ip_addresses(), st.integers(0, 128))
def test_every_address_and_network_reads_back(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, bits: int
) -> None:
    assert parse_ip_sloppy(str(address)) == address
    cidr = parse_cidr_sloppy(f"{address}/{bits}")
    if bits > address.max_prefixlen:
        assert cidr is None
    else:
        assert cidr is not None
        assert cidr.network == str(ipaddress.ip_network(f"{address}/{bits}", strict=False))
