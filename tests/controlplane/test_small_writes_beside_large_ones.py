"""Fifty tenants send the dearest bodies that are legal, all the time. Another tenant's small writes hardly wait.

The wait is counted in processor time of the server, not on a clock: the server has work all the time, so that both are
the same on a machine that has nothing else to do. A machine that is slower than the reference gets more time.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from attacks import Victim
from hostile_bodies import (
    CONFIG_MAPS,
    JSON,
    PODS,
    REVIEWS,
    YAML,
    host_ports,
    nested_duplicate_keys,
    raw_selector,
    resource_claims,
    yaml_nested_lists,
)
from hostile_requests import HostileRequest
from machine_speed import slowness
from patience import PATIENCE
from serving_process import ServeProcess

pytestmark = pytest.mark.slow

TENANTS, WRITES = 50, 15
LONGEST_WAIT = 0.5
ADMIN_TOKEN, WRITER_TOKEN = "admin-token", "writer-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder: Path = tmp_path_factory.mktemp("tenants")
    tokens = folder / "tokens.csv"
    lines = [f"tenant-{number},tenant-{number},t{number}" for number in range(TENANTS)]
    tokens.write_text("\n".join([f"{WRITER_TOKEN},writer,w", *lines]) + "\n")
    server = ServeProcess(folder / "data", f"--token-auth-file={tokens}", "--authorization-mode=AlwaysAllow")
    yield server
    server.close()


@pytest.fixture(scope="module")
def victim(server: ServeProcess) -> Victim:
    return Victim("127.0.0.1", server.port, str(server.data_dir / "pki/ca.crt"), ADMIN_TOKEN, WRITER_TOKEN)


def _hostile(number: int, resource: str, body: bytes, media_type: str = JSON) -> HostileRequest:
    credentials = ("Authorization", f"Bearer tenant-{number}")
    return HostileRequest("POST", f"{resource}?dryRun=All", (credentials, ("Content-Type", media_type)), body)


BODIES = [
    (PODS, host_ports(3_000), JSON),
    (REVIEWS, nested_duplicate_keys(), JSON),
    (PODS, resource_claims(), JSON),
    (REVIEWS, yaml_nested_lists(1_000_000), YAML),
    (REVIEWS, raw_selector(), JSON),
]


def _requests() -> list[bytes]:
    bodies = zip(range(TENANTS), cycle(BODIES), strict=False)
    return [_hostile(number, *body).on_the_wire() for number, body in bodies]


@contextmanager
def tenants_at_work(victim: Victim) -> Iterator[None]:
    """Each sends its request again as soon as it is answered. They have a process of their own: it is busy."""
    processes = multiprocessing.get_context("spawn")
    all_at_work = processes.Event()
    process = processes.Process(target=_send_all, args=(victim, all_at_work), daemon=True)
    process.start()
    try:
        assert all_at_work.wait(PATIENCE)
        yield
    finally:
        process.kill()
        process.join()


def _send_all(victim: Victim, all_at_work: Event) -> None:
    asyncio.run(Tenants(victim, all_at_work).play())


class Tenants:
    def __init__(self, victim: Victim, all_at_work: Event) -> None:
        self._victim, self._all_at_work = victim, all_at_work
        self._at_work = 0

    async def play(self) -> None:
        await asyncio.gather(*(self._send(request) for request in _requests()))

    async def _send(self, request: bytes) -> None:
        tls, sent_before = self._victim.tls("http/1.1"), False
        while True:
            reader, writer = await asyncio.open_connection(self._victim.host, self._victim.port, ssl=tls)
            try:
                writer.write(request)
                await writer.drain()
                if not sent_before:
                    sent_before = True
                    self._at_work += 1
                    if self._at_work == TENANTS:
                        self._all_at_work.set()
                await reader.readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()


def test_small_writes_wait_for_no_large_ones(server: ServeProcess, victim: Victim) -> None:
    """Each body is sent once before: what a server loads with the first one does not count."""
    for resource, body, media_type in BODIES:
        victim.call("POST", f"{resource}?dryRun=All", body, media_type=media_type, token=WRITER_TOKEN)
    waits = []
    with tenants_at_work(victim):
        for number in range(WRITES):
            body = b'{"metadata":{"name":"small-%d"},"data":{"a":"%b"}}' % (number, b"x" * 20_000)
            before = server.processor_seconds
            assert victim.call("POST", CONFIG_MAPS, body, token=WRITER_TOKEN) == 201
            waits.append((server.processor_seconds - before) / slowness(pieces=20))
    assert max(waits) <= LONGEST_WAIT


def test_work_for_clients_that_have_left_ends(server: ServeProcess, victim: Victim) -> None:
    """The work that waits when the tenants leave would take minutes."""
    with tenants_at_work(victim):
        pass
    left = server.processor_seconds
    while _offloaded(server):
        assert server.processor_seconds - left < 10.0
    assert server.processor_seconds - left < 10.0


def _offloaded(server: ServeProcess) -> int:
    """How much work is beside the loop, or waits to be."""
    _, body = server.get("/metrics", token=WRITER_TOKEN)
    found = re.findall(r"^pilothouse_offload_(?:running|waiting) ([0-9.]+)$", body.decode(), re.MULTILINE)
    assert len(found) == 2
    return sum(int(float(number)) for number in found)
