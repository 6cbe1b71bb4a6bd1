"""Replicas on one etcd, restarted in turn while clients write and watch: nobody notices."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from etcd_process import EtcdProcess, free_port
from patience import PATIENCE
from retrying_client import Retries, RetryingClient
from serving_process import ServeProcess

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LAST = "last"
PROTOCOLS = ("h2", "http/1.1")
Write: TypeAlias = tuple[int, str, int]
"""The revision, the name, and the number."""
PACE = 0.02  # seconds between the writes of one writer, so that there is time for the replicas to start


@dataclass
class Replicas:
    """As many as there are ports. They share what must be one: the certificates, and etcd."""

    etcd: EtcdProcess
    directory: Path
    ports: list[int]
    running: dict[int, ServeProcess] = field(default_factory=dict)

    def start(self, port: int) -> None:
        home = self.directory / str(port)
        first = self.directory / str(self.ports[0])
        if home != first and not home.exists():
            shutil.copytree(first / "pki", home / "pki")
        flags = [f"--etcd-servers={self.etcd.url}", f"--secure-port={port}", "--controllers="]
        self.running[port] = ServeProcess(home, *flags)

    def restart(self, port: int) -> None:
        self.running[port].signal(signal.SIGTERM)
        assert self.running[port].wait() == 0
        self.running.pop(port).close()
        self.start(port)

    def client(self, protocol: str, retries: Retries) -> RetryingClient:
        tls = self.running[self.ports[0]].tls()
        tls.set_alpn_protocols([protocol])
        return RetryingClient(self.ports, tls, retries)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    etcd = EtcdProcess(tmp_path / "etcd", options=["--log-level=error", "--unsafe-no-fsync"])
    etcd.start()
    found = Replicas(etcd, tmp_path, [free_port(), free_port()])
    try:
        for port in found.ports:
            found.start(port)
        yield found
    finally:
        for server in found.running.values():
            server.close()
        etcd.kill()


@dataclass
class Watched:
    """What one watch was told, across all the connections that it took."""

    events: list[Write] = field(default_factory=list)
    connections: int = 0
    away: float = 0.0  # the longest time between the end of one connection and the first line of the next

    async def follow(self, client: RetryingClient, since: str) -> None:
        """Until the last object is there."""
        ended = time.monotonic()
        while True:
            self.connections += 1
            query = f"watch=1&resourceVersion={since}"
            async with aclosing(client.lines(f"{CONFIG_MAPS}?{query}")) as lines:
                async for event in lines:
                    self.away, ended = max(self.away, time.monotonic() - ended if ended else 0.0), 0.0
                    assert event["type"] in ("ADDED", "MODIFIED"), event
                    since = event["object"]["metadata"]["resourceVersion"]
                    if event["object"]["metadata"]["name"] == LAST:
                        return
                    self.events.append((int(since), *_written(event["object"])))
            ended = time.monotonic()


def _written(stored: dict[str, Any]) -> tuple[str, int]:
    return stored["metadata"]["name"], int(stored["data"]["number"])


async def _write(client: RetryingClient, name: str, stop: asyncio.Event) -> list[Write]:
    """Each write is answered by what the last one has stored: a write that happened twice would be a conflict."""
    stored: dict[str, Any] = {"metadata": {"name": name}, "data": {}}
    method, path = "POST", CONFIG_MAPS
    written: list[Write] = []
    while not stop.is_set():
        stored["data"]["number"] = str(len(written))
        stored = await client.ask(method, path, stored)
        written.append((int(stored["metadata"]["resourceVersion"]), *_written(stored)))
        method, path = "PUT", f"{CONFIG_MAPS}/{name}"
        assert _written(await client.ask("GET", path)) == _written(stored)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), PACE)
    return written


async def test_replicas_that_restart_in_turn_fail_no_request_and_lose_and_double_no_event(
    replicas: Replicas, record_property: Callable[[str, object], None]
) -> None:
    retries, stop = Retries(), asyncio.Event()
    clients = [replicas.client(protocol, retries) for protocol in PROTOCOLS * 4]
    since = (await clients[0].ask("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    watches = [Watched() for _ in range(4)]
    watching = [asyncio.create_task(watch.follow(clients[i], since)) for i, watch in enumerate(watches)]
    writing = asyncio.gather(*(_write(client, f"written-{i}", stop) for i, client in enumerate(clients[4:])))
    for port in replicas.ports:
        await asyncio.to_thread(replicas.restart, port)
        assert not writing.done(), writing.exception()
    stop.set()
    written = sorted(write for writes in await writing for write in writes)
    await clients[0].ask("POST", CONFIG_MAPS, {"metadata": {"name": LAST}})
    await asyncio.wait_for(asyncio.gather(*watching), PATIENCE)
    assert [watch.events for watch in watches] == [written] * len(watches)
    assert max(watch.connections for watch in watches) > 1
    for client in clients:
        client.close()
    record_property("writes", len(written))
    record_property("retries", str(retries))
    record_property("seconds that a watch was away", max(watch.away for watch in watches))
