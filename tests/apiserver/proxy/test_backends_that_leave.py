"""Other servers that close the connection as soon as it stands."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tls_backends import SERVER_NAME, Pki

from pilothouse.apiserver.proxy.exchange import BackendFailed
from pilothouse.apiserver.proxy.pool import ConnectionPool
from pilothouse.apiserver.proxy.targets import Target

TRIES = 40
"""The end comes sometimes before, and sometimes after the connection is handed on."""


@contextlib.contextmanager
def leaving(context: ssl.SSLContext) -> Iterator[int]:
    """A server in a thread of its own, so that its close is there together with the end of the handshake."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with contextlib.suppress(OSError), client, context.wrap_socket(client, server_side=True):
                    pass

    with listener, ThreadPoolExecutor(1) as thread:
        thread.submit(serve)
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # ends the thread


async def ask(pool: ConnectionPool, port: int) -> None:
    exchange = await pool.take(Target("127.0.0.1", port, "/"))
    exchange.send_head("GET", "/", [])
    exchange.send_end(b"")
    await exchange.head()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_backend_that_closes_at_once_is_one_that_cannot_be_reached(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    pki = Pki.make(tmp_path)
    pair = pki.server(SERVER_NAME)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair.cert_file, pair.key_file)
    serving.maximum_version = version
    pool = ConnectionPool(ssl.create_default_context(cafile=pki.ca_file), SERVER_NAME)
    with leaving(serving) as port:
        for _ in range(TRIES):
            with pytest.raises((BackendFailed, OSError)):
                await ask(pool, port)
    pool.close()
