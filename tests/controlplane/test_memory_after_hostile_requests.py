"""Nothing that a client sends stays in memory beyond its request, unless it is bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hostile_requests as hostile
import pytest
from hostile_requests import HostileRequest
from serving_process import ServeProcess

KEPT = 30 << 20
METRICS = 2 << 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    process = ServeProcess(tmp_path / "data")
    yield process
    process.close()


def by_anybody(part: float) -> Iterator[HostileRequest]:
    """Each would have kept about 2 MB, 20 MB, 5 kB in /metrics, and what its headers have."""
    yield from hostile.long_paths(round(60 * part))
    yield from hostile.paths_of_many_segments(round(20 * part))
    yield from hostile.made_up_resources(round(1000 * part))
    yield from hostile.long_headers(round(4 * part))


def by_users(part: float) -> Iterator[HostileRequest]:
    yield from hostile.made_up_subresources(round(300 * part))
    yield from hostile.long_selectors(round(6 * part), size=300_000)
    yield from hostile.long_headers(round(6 * part))
    yield from hostile.long_identities(round(20 * part))
    yield from hostile.long_names_in_bodies(round(4 * part), size=200_000)
    yield from hostile.distinct_keys(round(300 * part))


async def attack(server: ServeProcess, part: float) -> None:
    anybody = await hostile.play(by_anybody(part), port=server.port, tls=server.tls(as_admin=False))
    assert anybody.keys() == {401}
    users = await hostile.play(by_users(part), port=server.port, tls=server.tls())
    assert users.keys() <= {200, 201, 400, 404, 406, 422}


async def test_what_hostile_clients_send_does_not_stay(server: ServeProcess) -> None:
    await attack(server, 0.2)  # until all that such requests need is loaded
    before = server.memory
    await attack(server, 1.0)
    status, metrics = server.get("/metrics")
    assert status == 200
    assert (server.memory - before) >> 20 <= KEPT >> 20
    assert len(metrics) <= METRICS
    assert not [made_up for made_up in (b"things-", b"group-", b"sub-", b"VERB", b"xxxx") if made_up in metrics]
