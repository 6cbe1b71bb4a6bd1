"""Floods of frames and large requests: the server ends or answers them as it should, and nobody waits meanwhile."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hostile_http1 import REQUESTS, play_http1
from hostile_http2 import FLOODS, Outcome, play
from livez_client import LivezClient, livez_client
from serving_process import ServeProcess

HOST, TOKEN = "127.0.0.1", "nobodys-token"
LONGEST_WAIT = 0.25
TRIES = 6
"""Other work on the machine may hold the server up, but not each time at the same moment."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("flooded")
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},nobody,1\n")
    process = ServeProcess(folder / "data", f"--token-auth-file={tokens}", "--authorization-mode=RBAC")
    yield process
    process.close()


@pytest.fixture(scope="module")
def other(server: ServeProcess) -> Iterator[LivezClient]:
    ca_file, pid = str(server.data_dir / "pki/ca.crt"), server.process.pid
    with livez_client(HOST, server.port, ca_file=ca_file, token=TOKEN, pid=pid) as client:
        yield client


def context(server: ServeProcess, alpn: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(server.data_dir / "pki" / "ca.crt"))
    made.set_alpn_protocols([alpn])
    return made


def outcomes(other: LivezClient, attack: Callable[[], Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Plays the attack until it has held nobody up; fails if that does not happen in some tries."""
    said: list[Outcome] = []
    waits: list[float] = []
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        other.longest_wait()
        said.append(asyncio.run(attack()))
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    return said


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_ended_with_the_right_error_and_holds_nobody_up(
    server: ServeProcess, other: LivezClient, name: str
) -> None:
    flood = FLOODS[name]
    for said in outcomes(other, lambda: play(flood, HOST, server.port, context(server, "h2"))):
        assert said.goaway == flood.ends_with
        assert len(said.statuses) >= (1 if flood.ends_with is None else flood.answers)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_large_request_is_answered_and_holds_nobody_up(server: ServeProcess, other: LivezClient, name: str) -> None:
    large = REQUESTS[name]
    for said in outcomes(other, lambda: play_http1(large, HOST, server.port, context(server, "http/1.1"))):
        assert said.statuses == [large.status]
