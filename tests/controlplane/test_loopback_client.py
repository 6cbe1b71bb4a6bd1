"""The loopback client that the server hands to its own parts."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.authn.interface import UnionAuthenticator
from pilothouse.apiserver.authz.always import AlwaysDeny
from pilothouse.apiserver.filters.chain import ChainConfig
from pilothouse.apiserver.http import Request, Response
from pilothouse.controlplane.loopback import Loopback


async def who(request: Request) -> Response:
    return Response(200, b'{"name":"%s"}' % request.user.name.encode(), [(b"content-type", b"application/json")])


def new_loopback() -> Loopback:
    return Loopback(ChainConfig(UnionAuthenticator([]), AlwaysDeny()))


async def test_calls_are_made_by_the_server_itself_and_need_no_permission() -> None:
    loopback = new_loopback()
    loopback.bind(who)
    assert await loopback.client.get_json("/apis") == {"name": "system:apiserver"}


async def test_a_call_made_before_the_chain_is_built_waits_for_it() -> None:
    loopback = new_loopback()
    early = asyncio.ensure_future(loopback.client.get_json("/apis"))
    await asyncio.sleep(0)
    assert not early.done()
    loopback.bind(who)
    assert await early == {"name": "system:apiserver"}
