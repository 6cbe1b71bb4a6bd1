"""Floods of frames and large requests: the server ends or answers them as it should, and nobody waits meanwhile."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hostile_http1 import REQUESTS, play_http1
from hostile_http2 import FLOODS, Outcome, play, slowest_answer
from serving_process import ServeProcess

HOST = "127.0.0.1"
ENOUGH = 0.25
TRIES = 3
"""Other work on the machine may hold the server up, but not three times at the same moment."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    process = ServeProcess(tmp_path_factory.mktemp("flooded"), "--authorization-mode=RBAC")  # lets everybody see /livez
    yield process
    process.close()


def context(server: ServeProcess, alpn: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(server.data_dir / "pki" / "ca.crt"))
    made.set_alpn_protocols([alpn])
    return made


async def attacked(server: ServeProcess, attack: Coroutine[Any, Any, Outcome]) -> tuple[Outcome, float]:
    attacking = asyncio.create_task(attack)
    slowest = await slowest_answer(HOST, server.port, context(server, "http/1.1"), attacking)
    return await attacking, slowest


def outcomes(server: ServeProcess, attack: Callable[[], Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Plays the attack until it has held nobody up; fails if that does not happen in some tries."""
    said, slowest = [], []
    for _ in range(TRIES):
        outcome, held_up = asyncio.run(attacked(server, attack()))
        said.append(outcome)
        slowest.append(held_up)
        if held_up < ENOUGH:
            return said
    raise AssertionError(f"others waited for at least {min(slowest):.2f} s each time")


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_ended_with_the_right_error_and_holds_nobody_up(server: ServeProcess, name: str) -> None:
    flood = FLOODS[name]
    for said in outcomes(server, lambda: play(flood, HOST, server.port, context(server, "h2"))):
        assert said.goaway == flood.ends_with
        assert len(said.statuses) >= (1 if flood.ends_with is None else flood.answers)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_large_request_is_answered_and_holds_nobody_up(server: ServeProcess, name: str) -> None:
    large = REQUESTS[name]
    for said in outcomes(server, lambda: play_http1(large, HOST, server.port, context(server, "http/1.1"))):
        assert said.statuses == [large.status]
