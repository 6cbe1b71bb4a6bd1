"""Floods of HTTP/2 frames: the server ends them with the right error, and nobody else waits meanwhile."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator

import pytest
from hostile_http2 import FLOODS, Flood, Outcome, play, slowest_answer
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


async def attack(server: ServeProcess, flood: Flood) -> tuple[Outcome, float]:
    attacking = asyncio.create_task(play(flood, HOST, server.port, context(server, "h2")))
    slowest = await slowest_answer(HOST, server.port, context(server, "http/1.1"), attacking)
    return await attacking, slowest


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_ended_with_the_right_error_and_holds_nobody_up(server: ServeProcess, name: str) -> None:
    flood, slowest = FLOODS[name], []
    for _ in range(TRIES):
        outcome, held_up = asyncio.run(attack(server, flood))
        slowest.append(held_up)
        if flood.ends_with is not None:
            assert outcome.goaway == flood.ends_with
        else:
            assert (outcome.goaway, len(outcome.statuses)) == (None, 1)
        if held_up < ENOUGH:
            return
    raise AssertionError(f"others waited for up to {min(slowest):.2f} s each time")
