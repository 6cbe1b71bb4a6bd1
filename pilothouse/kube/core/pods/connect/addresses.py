"""Which addresses requests may be passed on to: never to this machine's own, nor to anything special."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation.addresses import parse_ip_sloppy

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


def is_global_unicast(address: str) -> bool:
    """Go's rule: private addresses count, special ones do not."""
    parsed = parse_ip_sloppy(address)
    if parsed is None or parsed == _BROADCAST:
        return False
    return not (parsed.is_unspecified or parsed.is_loopback or parsed.is_multicast or parsed.is_link_local)


async def check_host(host: str) -> None:
    """Raises BadRequest unless every address of the host may be used."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        raise BadRequest(f"lookup {host}: no such host") from None
    if not found:
        raise BadRequest("no addresses for hostname")
    if not all(is_global_unicast(str(place[0])) for *_, place in found):
        raise BadRequest("address not allowed")


def port_number(port: str) -> int:
    """Raises BadRequest."""
    if not (port.isascii() and port.isdigit() and len(port.lstrip("0")) < 6 and int(port) < 2**16):
        raise BadRequest(f"invalid port {quote(port)}")
    return int(port)
