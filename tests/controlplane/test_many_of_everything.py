"""Many connections, many unread lists, many definitions: others are served, and memory grows by little for each."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest
from attacks import Victim
from hostile_http2 import frame, get
from hostile_lists import CONFIG_MAPS, MEGABYTE, resident_bytes, store_large_objects
from livez_client import LivezClient, livez_client
from patience import PATIENCE
from serving_process import ServeProcess

pytestmark = pytest.mark.slow

LONGEST_WAIT = 0.25
ADMIN_TOKEN, TOKEN = "admin-token", "nobodys-token"
CONNECTIONS = 5_000
LISTS, OBJECTS = 24, 60
DEFINITIONS = int(os.environ.get("DEFINITIONS", "200"))
RULES = 1_000
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _WINDOW_UPDATE = 4, 8
_WIDE = (2**31 - 1 - 65_535).to_bytes(4, "big")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n{TOKEN},nobody,2\n')
    running = ServeProcess(tmp_path / "data", f"--token-auth-file={tokens}", "--authorization-mode=RBAC")
    yield running
    running.close()


@pytest.fixture
def other(server: ServeProcess) -> Iterator[LivezClient]:
    ca_file, pid = str(server.data_dir / "pki/ca.crt"), server.process.pid
    with livez_client("127.0.0.1", server.port, ca_file=ca_file, token=TOKEN, pid=pid) as client:
        yield client


async def test_idle_connections_cost_little_and_keep_nobody_out(server: ServeProcess, other: LivezClient) -> None:
    before, tls, at_once = resident_bytes(server), server.tls(as_admin=False), asyncio.Semaphore(20)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> None:
        async with at_once:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls, ssl_handshake_timeout=PATIENCE)
            writers.append(writer)

    other.longest_wait()
    await asyncio.gather(*(connect() for _ in range(CONNECTIONS)))
    assert other.longest_wait() <= LONGEST_WAIT
    assert (resident_bytes(server) - before) / CONNECTIONS < 100_000
    assert (await asyncio.to_thread(server.get, "/livez"))[0] == 200
    for writer in writers:
        writer.transport.abort()


@pytest.mark.parametrize("window", ["shut", "wide"])
def test_lists_over_http2_that_nobody_reads_hold_little(server: ServeProcess, other: LivezClient, window: str) -> None:
    """With windows that are shut the server may send nothing; with wide ones the socket stops it. Six connections."""
    store_large_objects(server, OBJECTS)
    before = resident_bytes(server)
    other.longest_wait()
    with ExitStack() as clients:
        for _ in range(6):
            clients.enter_context(_unread_streams(server, LISTS // 6, is_wide=window == "wide"))
        assert server.get("/api/v1/namespaces/default")[0] == 200
        held = resident_bytes(server) - before
    assert held < LISTS * 5 * MEGABYTE, f"{held / MEGABYTE:.0f} MB"
    assert other.longest_wait() <= LONGEST_WAIT


def _unread_streams(server: ServeProcess, count: int, *, is_wide: bool) -> ssl.SSLSocket:
    """Return a connection over which so many lists are answered, of which the first bytes were read only."""
    context = server.tls()
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client = context.wrap_socket(plain, server_hostname="127.0.0.1")
    stream_window = b"\0\4" + (2**31 - 1 if is_wide else 0).to_bytes(4, "big")
    head = _PREFACE + frame(_SETTINGS, 0, 0, stream_window)
    head += frame(_WINDOW_UPDATE, 0, 0, _WIDE) if is_wide else b""
    client.sendall(head + b"".join(get(1 + 2 * number, CONFIG_MAPS) for number in range(count)))
    assert client.recv(1)
    return client


def test_definitions_with_many_rules_keep_nobody_waiting(server: ServeProcess, other: LivezClient) -> None:
    """The last definition has a thousand rules, and its first object breaks them all: they are compiled for it.

    A wait that is the server's own comes back with each definition; the machine's comes now and then.
    """
    victim = Victim("127.0.0.1", server.port, str(server.data_dir / "pki/ca.crt"), ADMIN_TOKEN, TOKEN)
    definitions, waits = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []
    other.longest_wait()
    for number in range(DEFINITIONS):
        assert victim.call("POST", definitions, _definition(f"kind{number}", 3), token=ADMIN_TOKEN) == 201
        waits.append(other.longest_wait())
    assert sorted(waits)[-1 - DEFINITIONS // 50] <= LONGEST_WAIT
    waits = [_wait_for_an_object_of_many_rules(victim, other, name) for name in ("one", "two", "three")]
    assert min(waits) <= LONGEST_WAIT
    for path in ("/openapi/v2", "/openapi/v3", "/apis", "/metrics"):
        assert victim.call("GET", path, token=ADMIN_TOKEN) == 200


def _wait_for_an_object_of_many_rules(victim: Victim, other: LivezClient, name: str) -> float:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    other.longest_wait()
    assert victim.call("POST", definitions, _definition(name, RULES), token=ADMIN_TOKEN) == 201
    objects = f"/apis/{name}.example.com/v1/{name}s"
    while victim.call("GET", objects, token=ADMIN_TOKEN) != 200:
        pass  # a new definition takes a moment to be served
    spec = {f"f{number}": -1 for number in range(RULES)}
    body = {"apiVersion": f"{name}.example.com/v1", "kind": name.capitalize(), "metadata": {"name": "a"}, "spec": spec}
    assert victim.call("POST", objects, orjson.dumps(body), token=ADMIN_TOKEN) == 422
    return other.longest_wait()


def _definition(name: str, rules: int) -> bytes:
    """Each in a group of its own."""
    fields = {f"f{number}": {"type": "integer"} for number in range(rules)}
    checks = [{"rule": f"self.f{number} >= {number}", "message": "too small"} for number in range(rules)]
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": checks}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    group, names = f"{name}.example.com", {"plural": f"{name}s", "kind": name.capitalize()}
    return orjson.dumps({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    })  # fmt: skip
