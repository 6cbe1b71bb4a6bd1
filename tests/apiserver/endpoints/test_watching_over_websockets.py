"""Watches as browsers have them: one WebSocket message for each event."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest
from custom_resources import eventually
from remote_api import GROUP, RemoteAPI
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.testing import API

ORIGIN = "https://console.example.com"
PROTOBUF = "application/vnd.kubernetes.protobuf"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Origin": ORIGIN,
}


@asynccontextmanager
async def session(api: API) -> AsyncIterator[aiohttp.ClientSession]:
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=api.ca))
    async with aiohttp.ClientSession(
        api.url, connector=trust, headers={"Authorization": f"Bearer {api.token}"}
    ) as opened:
        yield opened


async def test_each_event_is_a_text_message_and_the_end_is_a_normal_close(api: API) -> None:
    await create_config_map(api, "a")
    await create_config_map(api, "large", data={"k": "v" * 70_000})
    async with session(api) as browser:
        target = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1"
        async with browser.ws_connect(target, origin=ORIGIN, autoclose=False) as socket:
            await socket.ping(b"there?")
            await socket.send_str("nobody reads this")
            *messages, end = [await socket.receive() for _ in range(3)]
    assert {message.type for message in messages} == {aiohttp.WSMsgType.TEXT}
    assert (end.type, end.data) == (aiohttp.WSMsgType.CLOSE, 1000)
    events = [orjson.loads(message.data) for message in messages]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "large"),
    ]


async def test_protobuf_comes_in_binary_messages_without_a_length_of_their_own(api: API) -> None:
    await create_config_map(api, "a")
    async with session(api) as browser:
        target = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1"
        async with browser.ws_connect(target, origin=ORIGIN, headers={"Accept": PROTOBUF}) as socket:
            first = await socket.receive()
    assert (first.type, first.data[:8]) == (aiohttp.WSMsgType.BINARY, b"\n\x05ADDED\x12")


async def test_a_version_that_is_too_old_is_an_error_event(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        start = (await create_config_map(api, "a"))["metadata"]["resourceVersion"]
        await create_config_map(api, "b")
    async with whole_server(tmp_path) as api, session(api) as browser:
        target = f"{CONFIG_MAPS}?watch=1&resourceVersion={start}"
        async with browser.ws_connect(target, origin=ORIGIN) as socket:
            event = await socket.receive_json()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_the_watch_ends_when_the_client_closes(api: API) -> None:
    async with session(api) as browser, browser.ws_connect(f"{CONFIG_MAPS}?watch=1", origin=ORIGIN) as socket:
        await create_config_map(api, "b")
        assert (await socket.receive_json())["object"]["metadata"]["name"] == "b"
        await socket.close()
        assert socket.close_code == 1000


@pytest.mark.parametrize(
    ("header", "value", "status", "text"),
    [
        ("Origin", "", 403, ""),
        ("Origin", "console", 403, ""),
        ("Sec-WebSocket-Key", "", 400, "mismatch challenge/response"),
        ("Sec-WebSocket-Version", "8", 400, "missing or bad WebSocket Version"),
        ("Sec-WebSocket-Protocol", "a, b", 400, ""),
    ],
)
async def test_a_handshake_that_is_none_is_refused(api: API, header: str, value: str, status: int, text: str) -> None:
    headers = HANDSHAKE | {header: value}
    async with session(api) as browser, browser.get(f"{CONFIG_MAPS}?watch=1", headers=headers) as answer:
        assert (answer.status, await answer.text()) == (status, text)


async def test_the_watch_of_another_server_comes_through_the_aggregator(tmp_path: Path) -> None:
    gadgets = f"/apis/{GROUP}/v1/namespaces/default/gadgets"
    gadget = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    with RemoteAPI(tmp_path / "remote") as remote:
        async with whole_server(tmp_path / "data") as api, session(api) as browser:
            service, api_service = json.loads(remote.manifests())["items"]
            await api.request("POST", "/api/v1/namespaces/default/services", service)
            await api.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", api_service)
            await eventually(api, 201, "POST", gadgets, gadget)
            async with browser.ws_connect(f"{gadgets}?watch=1", origin=ORIGIN) as socket:
                event = await socket.receive_json()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "g")
