"""A request goes with its answer, at once: were it in a cycle, a client could fill the memory with large ones long
before the garbage collector has a look."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator

import pytest
from serving_harness import Http1Client, Http2Client, eventually, port_and_context
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.apiserver.http import Request

ASKED = [
    # method, target, headers, body                                        answered
    ("GET", CONFIG_MAPS, "", b"", 200),
    ("GET", CONFIG_MAPS + "/marked", "", b"", 404),
    ("GET", "/api/v1" + "/marked" * 200, "", b"", 404),
    ("GET", "/marked", "Authorization: Bearer wrong\r\n", b"", 401),
    ("PUT", CONFIG_MAPS, "", b"", 405),
    ("GET", CONFIG_MAPS, "Accept: text/marked\r\n", b"", 406),
    ("GET", CONFIG_MAPS + "?labelSelector=,,", "", b"", 400),
    ("POST", CONFIG_MAPS, "Content-Type: application/json\r\n", b"{", 400),
    ("POST", CONFIG_MAPS, "Content-Type: application/json\r\n", json.dumps({"metadata": {"name": "A"}}).encode(), 422),
    ("POST", CONFIG_MAPS, "Content-Type: application/json\r\n", json.dumps({"metadata": {"name": "a"}}).encode(), 201),
    ("POST", CONFIG_MAPS, "Content-Type: application/json\r\n", json.dumps({"metadata": {"name": "a"}}).encode(), 409),
    ("DELETE", CONFIG_MAPS + "/a", "", b"", 200),
]


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    gc.freeze()  # what was there before is set aside
    yield
    gc.unfreeze()
    gc.enable()


def alive() -> list[str]:
    found = [each for each in gc.get_objects() if isinstance(each, Request) and each.transport is not None]
    return [f"{each.method} {each.path}" for each in found]


@pytest.mark.usefixtures("no_collector")
async def test_a_request_is_freed_when_it_is_answered() -> None:
    async with whole_server() as api:
        client = await Http1Client.connect(*port_and_context(api, alpn="http/1.1"))
        known = f"Authorization: Bearer {api.token}\r\n"
        for method, target, headers, body, status in ASKED:
            client.ask(target, method, headers if "Authorization" in headers else headers + known, body)
            answer = await client.answer()
            assert answer.status == status, answer.body
            await eventually(lambda: not alive())
        client.ask(f"{CONFIG_MAPS}?watch=1", headers=known)
        await client.head()
        assert alive()
        client.close()
        await eventually(lambda: not alive())


@pytest.mark.usefixtures("no_collector")
async def test_a_request_of_http_2_is_freed_when_it_is_answered() -> None:
    async with whole_server() as api:
        client = await Http2Client.connect(*port_and_context(api, alpn="h2"))
        for target in (CONFIG_MAPS, "/version", "/api/v1" + "/marked" * 200):
            await client.get(target)
            await eventually(lambda: not alive())
        client.close()
