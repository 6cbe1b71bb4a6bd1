"""The source addresses of a request, formatted as in Go."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from pilothouse.apiserver.http import LONGEST_READ, Request

_MOST_PROXIES = 100
"""Maximum number of evaluated addresses, nearest first: clients can send any number, and the nearest proxies are
trusted."""


def source_ips(request: Request) -> list[str]:
    """Return the addresses that proxies report, farthest first, and the address of the peer last."""
    forwarded = request.whole_header(b"x-forwarded-for") or request.header(b"x-real-ip")
    parts = forwarded[-LONGEST_READ:].rsplit(",", _MOST_PROXIES)[-_MOST_PROXIES:] if forwarded else ()
    named = [address for part in parts if (address := _address(part))]
    connected = _address(request.client[0]) if request.client else ""
    if connected and (not named or named[-1] != connected):
        named.append(connected)
    return named


def _address(text: str) -> str:
    """Normalize an address: a dual-stack socket maps IPv4 into IPv6."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
