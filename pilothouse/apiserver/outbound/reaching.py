"""The addresses of a target, tried one after the other as Go does: the first that takes a connection has it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from pilothouse.apiserver.outbound.certificate_names import certificate_of
from pilothouse.apiserver.outbound.failures import DialFailed, is_other_name
from pilothouse.apiserver.outbound.targets import Target

T = TypeVar("T")


async def reach(target: Target, connect: Callable[[Target], Awaitable[T]]) -> T:
    """Return what `connect` makes of the first address that it can connect to, within the target's time.

    `connect` raises OSError for an address that does not take the connection.

    Raises DialFailed: of the first address, when none takes the connection.
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
    """A certificate for another name is looked at once more: the handshake that failed did not keep it."""
    wrong = await certificate_of(place) if is_other_name(error) else b""
    return DialFailed(error, place, wrong)


async def _addresses(target: Target) -> list[Target]:
    """The target at each of its addresses. Raises OSError."""
    try:
        ipaddress.ip_address(target.connect_host)
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(target.connect_host, target.connect_port, type=socket.SOCK_STREAM)
        return [replace(target, address=str(info[4][0])) for info in found]
    return [target]
