"""A stand-in for etcd: it answers health checks, binds its ports and has a data directory, but stores nothing."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import SplitResult, quote, urlsplit

from pilothouse import __version__
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.files import PRIVATE, write_atomically
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
    """Serve until SIGTERM or SIGINT. Return the exit code: 0, 1 if a port is in use, 2 for an invalid flag."""
    if any(word.lstrip("-") in ("h", "help") for word in arguments):
        print(USAGE, end="")
        return 0
    if any(word.lstrip("-") in ("version", "version=true") for word in arguments):
        print(f"etcd Version: {_VERSION}\nGit SHA: none (stand-in by Pilothouse {__version__})")
        return 0
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # before any thread starts: threads inherit the mask
    try:
        flags = read_flags(arguments)
        # Bind the ports and wait for a signal. Raises OSError.
        store = flags.data_dir / "pilothouse"
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = secrets.token_hex(16)
        write_atomically(store / SECRET_FILE, secret.encode(), mode=PRIVATE)
        with ExitStack() as ports:
            for family, address in map(_address, flags.peer_urls):
                ports.enter_context(socket.create_server(address, family=family))
            for server in [ports.enter_context(_Clients(url, store, secret)) for url in flags.client_urls]:
                Thread(target=server.serve_forever, daemon=True).start()
            urls = ", ".join(url.geturl() for url in flags.client_urls)
            print(f"Standing in for etcd at {urls}, data directory {flags.data_dir}", file=sys.stderr, flush=True)
            signal.sigwait(_SIGNALS)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _address(url: SplitResult) -> tuple[int, tuple[str, int]]:
    """Return the address family and address; IPv4 is preferred. Raises OSError."""
    candidates = socket.getaddrinfo(url.hostname, url.port or 0, type=socket.SOCK_STREAM)
    family, *_, address = min(candidates, key=lambda candidate: candidate[0] != socket.AF_INET)
    return family, (str(address[0]), int(address[1]))


class _Clients(ThreadingHTTPServer):
    """Server of the client port."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url: SplitResult, store: Path, secret: str) -> None:
        self.store, self.secret = store, secret
        self.address_family, address = _address(url)
        super().__init__(address, _Answer)

    def server_bind(self) -> None:
        """Bind without a reverse lookup of the host name, which may take seconds."""
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
            path, "This is a stand-in for etcd: Pilothouse's kube-apiserver stores the objects.\n"
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
        """Log nothing: health checks come ten times a second."""


_DEFAULTS = {
    "listen-client-urls": "http://localhost:2379",
    "listen-peer-urls": "http://localhost:2380",
    "name": "default",
    "data-dir": "",
}

USAGE = """Stand-in for etcd in tests. Answers health checks; Pilothouse's kube-apiserver stores the objects.

Usage:
  etcd [flags]

Flags:
  --advertise-client-urls 'http://localhost:2379'
        Ignored. All flags of etcd are accepted; only the flags below have an effect.
  --data-dir '${name}.etcd'
        Directory of the objects.
  --listen-client-urls 'http://localhost:2379'
        URLs of /health and /version.
  --listen-peer-urls 'http://localhost:2380'
        URLs to bind, as etcd does.
  --name 'default'
        Name of this member.
  --unsafe-no-fsync 'false'
        Ignored: the stand-in does not write to disk.
"""


class UsageError(Exception):
    """The command line is invalid; the message names the problem."""


@dataclass(frozen=True, slots=True)
class EtcdFlags:
    client_urls: list[SplitResult]
    peer_urls: list[SplitResult]
    data_dir: Path


def read_flags(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> EtcdFlags:
    """Parse the flags. Raises UsageError."""
    given = dict(_given(arguments))

    def value(name: str) -> str:
        return given.get(name) or environment.get(f"ETCD_{name.upper().replace('-', '_')}") or _DEFAULTS[name]

    return EtcdFlags(
        client_urls=_urls("listen-client-urls", value("listen-client-urls")),
        peer_urls=_urls("listen-peer-urls", value("listen-peer-urls")),
        data_dir=Path(value("data-dir") or f"{value('name')}.etcd").absolute(),
    )


def _given(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value). A flag without "=" takes the next word unless that begins with a dash; otherwise it is a
    switch.
    """
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise UsageError(f"'{word}' is not a valid flag")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("-") else "true"
        yield name, value


def _urls(flag: str, text: str) -> list[SplitResult]:
    urls = [urlsplit(url) for url in text.split(",")]
    for url in urls:
        if url.scheme != "http" or not url.hostname:
            raise UsageError(f"--{flag}: {url.geturl()} is not supported: expected http://host:port")
    return urls
