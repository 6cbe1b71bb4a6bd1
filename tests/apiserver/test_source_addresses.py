"""Where a request came from, as audit logs and discovery have it."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.http import Request, source_ips


async def _no_body(limit: int) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("peer", "forwarded", "sources"),
    [
        ("192.0.2.1", "", ["192.0.2.1"]),
        ("::ffff:192.0.2.1", "", ["192.0.2.1"]),
        ("2001:db8:0::1", "", ["2001:db8::1"]),
        ("::ffff:192.0.2.1", "::ffff:198.51.100.7, 192.0.2.1", ["198.51.100.7", "192.0.2.1"]),
        ("192.0.2.1", "nowhere", ["192.0.2.1"]),
    ],
)
def test_an_ipv4_address_is_one_in_whatever_form(peer: str, forwarded: str, sources: list[str]) -> None:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    request = Request("GET", "/api", "", headers, _no_body)
    request.client = (peer, 1)
    assert source_ips(request) == sources
