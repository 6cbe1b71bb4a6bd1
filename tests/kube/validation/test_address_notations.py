"""Families of addresses, where endpoints may live, and the notations that are warned of."""

from __future__ import annotations

import pytest

from pilothouse.kube.validation.addresses import (
    cidr_family,
    endpoint_ip,
    ip_family,
    warnings_for_cidr,
    warnings_for_ip,
)
from pilothouse.machinery.field import root

PATH = root("f")


@pytest.mark.parametrize(
    ("text", "family"),
    [("10.0.0.1", "IPv4"), ("010.0.0.1", "IPv4"), ("::ffff:10.0.0.1", "IPv4"), ("fd00::1", "IPv6"), ("x", "")],
)
def test_an_address_that_is_mapped_into_ipv6_is_ipv4(text: str, family: str) -> None:
    assert ip_family(text) == family


@pytest.mark.parametrize(("text", "family"), [("10.0.0.0/8", "IPv4"), ("fd00::/64", "IPv6"), ("10.0.0.0", "")])
def test_a_cidr_has_the_family_of_its_address(text: str, family: str) -> None:
    assert cidr_family(text) == family


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10.0.0.1", ""),
        ("239.1.1.1", ""),
        ("::", "may not be unspecified (::)"),
        ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("::ffff:127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("224.0.0.7", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("x", "must be a valid IP address"),
    ],
)
def test_endpoint_address_must_be_reachable(text: str, why: str) -> None:
    assert [error.detail for error in endpoint_ip(text, PATH)] == ([why] if why else [])


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("10.0.0.1", ""),
        ("fd00::1", ""),
        ("010.0.0.1", 'non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'),
        ("::ffff:10.0.0.1", 'non-standard IP address "::ffff:10.0.0.1" is invalid: use "10.0.0.1"'),
        ("FD00:0::1", 'IPv6 address "FD00:0::1" should be in RFC 5952 canonical format ("fd00::1")'),
    ],
)
def test_unusual_address_yields_a_warning(text: str, warning: str) -> None:
    assert warnings_for_ip(text, PATH) == ([f"f: {warning}"] if warning else [])


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("10.0.0.0/8", []),
        (
            "10.0.0.1/8",
            ['CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'],
        ),
        ("10.0.0.0/08", ['non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8"']),
        ("::ffff:10.0.0.0/104", ['non-standard CIDR value "::ffff:10.0.0.0/104" is invalid: use "10.0.0.0/8"']),
        ("FD00::/64", ['IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")']),
        ("x", []),
    ],
)
def test_unusual_cidr_yields_a_warning(text: str, warnings: list[str]) -> None:
    assert warnings_for_cidr(text, PATH) == [f"f: {warning}" for warning in warnings]
