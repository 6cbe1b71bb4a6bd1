"""The insecure port answers to this machine's own names, and to pages that may call it."""

from __future__ import annotations

import pytest
from filter_requests import answer_ok
from filter_requests import make_request as build_request

from pilothouse.apiserver.filters.loopback_names import names_loopback, with_loopback_names
from pilothouse.machinery.errors import Forbidden

HERE = ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "127.255.255.254:1", "[::1]", "[::1]:8080"]
ELSEWHERE = [
    "",
    "rebound.example",
    "rebound.example:8080",
    "localhost.rebound.example",
    "127.0.0.1.rebound.example",
    "127.0.0.1:8080@rebound.example",
    "localhost:8080.rebound.example",
    "127.0.0.999",
    "127.1",
    "0.0.0.0",
    "[::]",
    "::1",
    "10.0.0.1",
    "localhost\n",
]


@pytest.mark.parametrize("host", HERE)
async def test_this_machine_is_meant(host: str) -> None:
    assert names_loopback(host)
    handler = with_loopback_names(())(answer_ok)
    assert (await handler(build_request()(headers={"Host": host, "Origin": f"http://{host}"}))).status == 200


@pytest.mark.parametrize("host", ELSEWHERE)
async def test_another_machine_is_meant(host: str) -> None:
    assert not names_loopback(host)
    handler = with_loopback_names(())(answer_ok)
    with pytest.raises(Forbidden, match="the insecure port answers only to localhost"):
        await handler(build_request()(headers={"Host": host}))
    if host:
        with pytest.raises(Forbidden, match="not to the Origin"):
            await handler(build_request()(headers={"Host": "localhost", "Origin": f"http://{host}"}))


async def test_a_page_without_a_name_may_not_call() -> None:
    with pytest.raises(Forbidden, match='not to the Origin "null"'):
        await with_loopback_names(())(answer_ok)(build_request()(headers={"Host": "localhost", "Origin": "null"}))


async def test_pages_of_allowed_origins_may_call() -> None:
    handler = with_loopback_names([r"//console\.example$"])(answer_ok)
    asked = build_request()(headers={"Host": "localhost", "Origin": "https://console.example"})
    assert (await handler(asked)).status == 200
