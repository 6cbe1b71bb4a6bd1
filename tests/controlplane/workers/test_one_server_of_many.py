"""Several workers are one server: whichever of them a client gets, it finds the same."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from restarts import server_client
from worker_processes import WORKERS, WorkersServer

from pilothouse.client.wait import poll

CONNECTIONS = 12
"""Enough that all of them at one worker are very unlikely."""

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkersServer]:
    """Has its temporary files beside its data, and a umask that lets everybody read and write."""
    folder: Path = tmp_path_factory.mktemp("workers")
    umask = os.umask(0)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("TMPDIR", str(folder))
            server = WorkersServer(folder / "data", "--max-requests-inflight=20", "--v=1")
    finally:
        os.umask(umask)
    yield server
    server.close()


@pytest.fixture(scope="module")
def connections(server: WorkersServer) -> Iterator[list[HTTPSConnection]]:
    opened = [server.connect() for _ in range(CONNECTIONS)]
    yield opened
    for connection in opened:
        connection.close()


def call(connection: HTTPSConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_there_are_a_store_and_the_workers(server: WorkersServer) -> None:
    assert sorted(server.processes()) == ["store", *(f"worker {number}" for number in range(1, WORKERS + 1))]


def test_nobody_else_may_connect_to_the_sockets_of_workers(server: WorkersServer) -> None:
    sockets = list(server.data_dir.parent.glob("pilothouse-*/*.sock"))
    assert len(sockets) == WORKERS
    assert {stat.S_IMODE(each.stat().st_mode) for each in sockets} == {0o600}
    assert {stat.S_IMODE(each.parent.stat().st_mode) for each in sockets} == {0o700}


def test_what_returned_from_one_worker_is_seen_by_all_others_at_once(connections: list[HTTPSConnection]) -> None:
    for number, writer in enumerate(connections):
        name = f"seen-{number}"
        status, made = call(writer, "POST", CONFIG_MAPS, {"metadata": {"name": name}})
        assert status == 201
        for reader in connections:
            assert call(reader, "GET", f"{CONFIG_MAPS}/{name}") == (200, made)
            listed = call(reader, "GET", CONFIG_MAPS)[1]
            assert name in {each["metadata"]["name"] for each in listed["items"]}
            assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])


def test_a_write_on_what_another_worker_has_changed_is_a_conflict(connections: list[HTTPSConnection]) -> None:
    _, made = call(connections[0], "POST", CONFIG_MAPS, {"metadata": {"name": "contended"}})
    outcomes = [
        call(each, "PUT", f"{CONFIG_MAPS}/contended", made | {"data": {"n": str(at)}})[0]
        for at, each in enumerate(connections)
    ]
    assert outcomes == [200] + [409] * (CONNECTIONS - 1)


async def test_addresses_and_node_ports_are_given_once(server: WorkersServer) -> None:
    async def make(number: int) -> Any:
        async with server_client(server) as own:  # a connection of its own
            spec = {"type": "NodePort", "ports": [{"port": 80}]}
            service = {"metadata": {"name": f"service-{number}"}, "spec": spec}
            return await own.resource("v1", "services", namespace="default").create(service)

    made = await asyncio.gather(*(make(number) for number in range(24)))
    assert len({each["spec"]["clusterIP"] for each in made}) == len(made)
    assert len({each["spec"]["ports"][0]["nodePort"] for each in made}) == len(made)


def test_metrics_are_the_sum_of_all_workers(server: WorkersServer, connections: list[HTTPSConnection]) -> None:
    def counted() -> float:
        _, body = server.get("/metrics")
        line = 'apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="secrets"'
        return sum(float(each.split()[-1]) for each in body.decode().splitlines() if each.startswith(line))

    before = counted()
    for connection in connections:
        assert call(connection, "GET", "/api/v1/namespaces/default/secrets/absent")[0] == 404
    assert counted() - before == CONNECTIONS


def test_the_server_is_ready_when_all_workers_are(server: WorkersServer) -> None:
    status, body = server.get("/readyz?verbose")
    assert (status, "[+]workers ok" in body.decode()) == (200, True)


async def test_a_definition_is_served_by_all_workers(server: WorkersServer, connections: list[HTTPSConnection]) -> None:
    names = {"plural": "flags", "singular": "flag", "kind": "Flag", "listKind": "FlagList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    definition = {
        "metadata": {"name": "flags.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert call(connections[0], "POST", DEFINITIONS, definition)[0] == 201

    async def is_served(connection: HTTPSConnection) -> bool:
        connection.request("GET", "/apis/example.com/v1/namespaces/default/flags")
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    for connection in connections:
        await poll(partial(is_served, connection), interval=0.05, timeout=PATIENCE)


def test_sigterm_to_the_supervisor_ends_all_in_good_order(tmp_path: Path) -> None:
    server = WorkersServer(tmp_path / "data")
    pids = server.processes().values()
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not [pid for pid in pids if server.lives(pid)]
    server.close()


def test_sigterm_to_every_process_at_once_ends_all_in_good_order(tmp_path: Path) -> None:
    """As systemd does it."""
    server = WorkersServer(tmp_path / "data")
    for pid in (server.process.pid, *server.processes().values()):
        with suppress(ProcessLookupError):  # the supervisor may be faster
            os.kill(pid, signal.SIGTERM)
    assert server.wait() == 0
    assert "gone" not in server.errors()
    server.close()


def test_no_process_outlives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    server = WorkersServer(tmp_path / "data")
    pids = server.processes().values()
    server.signal(signal.SIGKILL)
    server.wait()
    again = WorkersServer(server.data_dir)  # its start takes the lock of the directory, which every process holds
    assert not [pid for pid in pids if server.lives(pid)]
    server.close()
    again.close()
