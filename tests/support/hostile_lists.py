"""Clients that ask a server in its own process for much and read nothing of it."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patience import PATIENCE
from serving_process import ServeProcess

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MEGABYTE = 1 << 20


def store_large_objects(server: ServeProcess, count: int, *, size: int = MEGABYTE - 1024) -> None:
    """ConfigMaps that a list of them is `count * size` bytes long with."""
    connection = server.connect(timeout=PATIENCE)
    for number in range(count):
        body = json.dumps({"metadata": {"name": f"large-{number}"}, "data": {"k": "v" * size}})
        connection.request("POST", CONFIG_MAPS, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()
    connection.close()


@contextmanager
def unread_lists(
    server: ServeProcess, count: int, *, target: str = CONFIG_MAPS, accept: str = "application/json"
) -> Iterator[list[ssl.SSLSocket]]:
    """So many lists are being answered while the block lasts, and nobody reads more of one than its first byte."""
    clients = [_ask(server, target, accept) for _ in range(count)]
    try:
        for client in clients:
            assert client.recv(1) == b"H"
        yield clients
    finally:
        for client in clients:
            client.close()


def _ask(server: ServeProcess, target: str, accept: str) -> ssl.SSLSocket:
    pki = server.data_dir / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    plain = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client = context.wrap_socket(plain, server_hostname="127.0.0.1")
    client.sendall(f"GET {target} HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n".encode())
    return client


def resident_bytes(server: ServeProcess) -> int:
    """What the server has in memory."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
