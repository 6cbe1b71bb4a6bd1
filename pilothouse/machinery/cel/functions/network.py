"""IP addresses and ranges in expressions. Zones, IPv4 inside of IPv6 and leading zeros are refused."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from typing import Any

ADDRESS = "@ip"
RANGE = "@cidr"


def parse_ip(text: str) -> dict[str, Any]:
    return {ADDRESS: str(_address(text))}


def is_ip(text: str) -> bool:
    return _succeeds(_address, text)


def is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def parse_cidr(text: str) -> dict[str, Any]:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal() or (len(bits) > 1 and bits.startswith("0")):
        raise ValueError(f'network address parse error during conversion from string: netip.ParsePrefix("{text}")')
    return {RANGE: str(ip_interface(f"{_address(address)}/{bits}"))}


def is_cidr(text: str) -> bool:
    return _succeeds(parse_cidr, text)


def contains_ip(value: dict[str, Any], other: dict[str, Any] | str) -> bool:
    address = _address(other) if isinstance(other, str) else ip_address(other[ADDRESS])
    return address in ip_interface(value[RANGE]).network


def contains_cidr(value: dict[str, Any], other: dict[str, Any] | str) -> bool:
    outer = ip_interface(value[RANGE]).network
    inner = ip_interface((parse_cidr(other) if isinstance(other, str) else other)[RANGE])
    return inner.ip in outer and inner.network.prefixlen >= outer.prefixlen


def ip_of(value: dict[str, Any]) -> dict[str, Any]:
    return {ADDRESS: str(ip_interface(value[RANGE]).ip)}


def prefix_length(value: dict[str, Any]) -> int:
    return ip_interface(value[RANGE]).network.prefixlen


def masked(value: dict[str, Any]) -> dict[str, Any]:
    return {RANGE: str(ip_interface(value[RANGE]).network)}


def _trait(test: Callable[[IPv4Address | IPv6Address], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda value: test(ip_address(value[ADDRESS]))


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Whether Go calls the address a global unicast: private ones count."""
    broadcast = address == IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


TRAITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "family": _trait(lambda address: address.version),
    "isUnspecified": _trait(lambda address: address.is_unspecified),
    "isLoopback": _trait(lambda address: address.is_loopback),
    "isLinkLocalMulticast": _trait(
        lambda address: (
            address.is_multicast
            and (str(address).startswith("224.0.0.") if address.version == 4 else address.packed[1] & 0x0F == 2)
        )
    ),
    "isLinkLocalUnicast": _trait(lambda address: address.is_link_local),
    "isGlobalUnicast": _trait(_is_global_unicast),
}


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise ValueError(f'IP address "{text}" with zone value is not allowed')
    try:
        address = ip_address(text)
    except ValueError:
        why = f'ParseAddr("{text}"): unable to parse IP'
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {why}') from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _succeeds(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
