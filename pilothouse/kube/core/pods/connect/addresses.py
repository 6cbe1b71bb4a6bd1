"""The addresses that requests may be passed on to: never this machine's own, nor anything special.

What is checked is what is connected to: an address is written anew from what was read, because others read `0177.0.0.1`
differently, and a name is looked up once.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation.addresses import Address, format_ip, parse_ip_sloppy

_BROADCAST = IPv4Address("255.255.255.255")
_CARRY_IPV4_LAST = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""Compatible with IPv4, and NAT64."""


def proxyable_address(text: str) -> str:
    """The address to connect to. Raises BadRequest where nobody is passed on to."""
    parsed = parse_ip_sloppy(text)
    if parsed is None or not all(map(_is_global_unicast, _meanings(parsed))):
        raise BadRequest("address not allowed")
    return format_ip(parsed)


def as_read(text: str) -> str:
    """The address in the notation that everybody reads as it was read when it was validated."""
    parsed = parse_ip_sloppy(text)
    return text if parsed is None else format_ip(parsed)


def _is_global_unicast(address: Address) -> bool:
    """Go's rule: private addresses count, special ones do not."""
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != _BROADCAST


def _meanings(address: Address) -> Iterator[Address]:
    """The address itself, and any that it carries: this machine or a gateway may take it for that one."""
    yield address
    if isinstance(address, IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour))
        if any(address in network for network in _CARRY_IPV4_LAST):
            yield IPv4Address(int(address) & 0xFFFFFFFF)


async def proxyable_address_of(host: str) -> str:
    """The address of the host to connect to. Raises BadRequest unless all that it has may be used."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        raise BadRequest(f"lookup {host}: no such host") from None
    if not found:
        raise BadRequest("no addresses for hostname")
    first, *_ = [proxyable_address(str(place[0])) for *_, place in found]
    return first


def port_number(port: str) -> int:
    """Raises BadRequest."""
    if not (port.isascii() and port.isdigit() and len(port.lstrip("0")) < 6 and int(port) < 2**16):
        raise BadRequest(f"invalid port {quote(port)}")
    return int(port)
