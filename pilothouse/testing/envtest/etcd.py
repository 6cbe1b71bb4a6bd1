"""A stand-in for etcd: it answers health checks, holds its ports and has a data directory, but stores nothing."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import SplitResult, quote

from pilothouse import __version__
from pilothouse.machinery.whole_files import PRIVATE, write_atomically
from pilothouse.testing.envtest.etcd_flags import USAGE, EtcdFlags, UsageError, read_flags
from pilothouse.testing.envtest.store_place import SECRET_FILE, SECRET_HEADER, STORE_HEADER

_VERSION = "3.6.0"
_ANSWERS = {
    "/health": '{"health":"true","reason":""}',
    "/livez": "ok\n",
    "/readyz": "ok\n",
    "/version": f'{{"etcdserver":"{_VERSION}","etcdcluster":"{_VERSION}","storage":"{_VERSION}"}}',
}
_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def run_etcd(arguments: Sequence[str]) -> int:
    """Answer until SIGTERM or SIGINT comes. Returns the exit code: 0, 1 where a port is taken, 2 for a bad flag."""
    if any(word.lstrip("-") in ("h", "help") for word in arguments):
        print(USAGE, end="")
        return 0
    if any(word.lstrip("-") in ("version", "version=true") for word in arguments):
        print(f"etcd Version: {_VERSION}\nGit SHA: none (stand-in by Pilothouse {__version__})")
        return 0
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before any thread: all of them inherit it
    try:
        _hold(read_flags(arguments))
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _hold(flags: EtcdFlags) -> None:
    """Raises OSError."""
    store = flags.data_dir / "pilothouse"
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = secrets.token_hex(16)
    write_atomically(store / SECRET_FILE, secret.encode(), mode=PRIVATE)
    with ExitStack() as ports:
        for family, address in map(_address, flags.peer_urls):
            ports.enter_context(socket.create_server(address, family=family))
        for server in [ports.enter_context(_Clients(url, store, secret)) for url in flags.client_urls]:
            Thread(target=server.serve_forever, daemon=True).start()
        shown = ", ".join(url.geturl() for url in flags.client_urls)
        print(f"Standing in for etcd at {shown}, data directory {flags.data_dir}", file=sys.stderr, flush=True)
        signal.sigwait(_SIGNALS)


def _address(url: SplitResult) -> tuple[int, tuple[str, int]]:
    """Return the family and the address to listen on: IPv4 where a name has both. Raises OSError."""
    found = socket.getaddrinfo(url.hostname, url.port or 0, type=socket.SOCK_STREAM)
    family, *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, (str(address[0]), int(address[1]))


class _Clients(ThreadingHTTPServer):
    """The port for clients."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url: SplitResult, store: Path, secret: str) -> None:
        self.store, self.secret = store, secret
        self.address_family, address = _address(url)
        super().__init__(address, _Answer)

    def server_bind(self) -> None:
        """Without a look at the name of this host, which may take seconds."""
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Clients

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = _ANSWERS.get(
            path, "This stands in for etcd: objects are kept by Pilothouse's kube-apiserver.\n"
        ).encode()
        self.send_response(200 if path in _ANSWERS else 404)
        self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header(STORE_HEADER, quote(str(self.server.store)))
        self.send_header(SECRET_HEADER, self.server.secret)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: health checks come ten times a second."""
