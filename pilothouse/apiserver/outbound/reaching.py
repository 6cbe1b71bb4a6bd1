"""Sequential dialing of a target's addresses, like Go: the first success wins."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from pilothouse.apiserver.outbound.failures import DialFailed, is_other_name
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import certificate_of

T = TypeVar("T")


async def reach(target: Target, connect: Callable[[Target], Awaitable[T]]) -> T:
    """Return the result of `connect` for the first reachable address, within the target's timeout.

    `connect` raises OSError for an unreachable address.

    Raises DialFailed with the error of the first address if all fail.
    """
    try:
        async with asyncio.timeout(target.timeout):
            places = await _addresses(target)
            failed: DialFailed | None = None
            for place in places:
                try:
                    return await connect(place)
                except OSError as error:
                    failed = failed or await _dial_failed(error, place)
            assert failed is not None
            raise failed
    except OSError as error:
        raise DialFailed(error, target) from None


async def _dial_failed(error: OSError, place: Target) -> DialFailed:
    """Build the error. After a name mismatch the certificate is fetched again, because the failed handshake discards
    it."""
    wrong = await certificate_of(place) if is_other_name(error) else b""
    return DialFailed(error, place, wrong)


async def _addresses(target: Target) -> list[Target]:
    """Return the target at each resolved address. Raises OSError."""
    try:
        ipaddress.ip_address(target.connect_host)
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(target.connect_host, target.connect_port, type=socket.SOCK_STREAM)
        return [replace(target, address=str(info[4][0])) for info in found]
    return [target]
