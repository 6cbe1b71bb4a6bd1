"""Nothing that a client sends stays in memory beyond its request, unless it is bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hostile_requests as hostile
import pytest
from hostile_requests import HostileRequest
from serving_process import ServeProcess

pytestmark = pytest.mark.slow

KEPT = 30 << 20
METRICS = 2 << 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    process = ServeProcess(tmp_path / "data")
    yield process
    process.close()


def by_anybody() -> Iterator[HostileRequest]:
    """Each would have kept about 2 MB, 20 MB, 5 kB in /metrics, and what its headers have."""
    yield from hostile.long_paths(40)
    yield from hostile.paths_of_many_segments(10)
    yield from hostile.made_up_resources(700)
    yield from hostile.long_headers(3)


def by_users() -> Iterator[HostileRequest]:
    yield from hostile.made_up_subresources(300)
    yield from hostile.long_selectors(6, size=200_000)
    yield from hostile.long_headers(3)
    yield from hostile.long_identities(20)
    yield from hostile.long_names_in_bodies(4, size=200_000)
    yield from hostile.distinct_keys(300)


async def attack(server: ServeProcess) -> None:
    anybody = await hostile.play(by_anybody(), port=server.port, tls=server.tls(as_admin=False), connections=2)
    assert anybody.keys() == {401}
    users = await hostile.play(by_users(), port=server.port, tls=server.tls(), connections=2)
    assert users.keys() <= {200, 201, 400, 404, 406, 422}


async def test_what_hostile_clients_send_does_not_stay(server: ServeProcess) -> None:
    for _ in range(2):  # so that all that such requests need is loaded, and the heap as large as they make it
        await attack(server)
    before = server.memory
    await attack(server)
    status, metrics = server.get("/metrics")
    assert status == 200
    assert (server.memory - before) >> 20 <= KEPT >> 20
    assert len(metrics) <= METRICS
    assert not [made_up for made_up in (b"things-", b"group-", b"VERB", b"xxxx") if made_up in metrics]
