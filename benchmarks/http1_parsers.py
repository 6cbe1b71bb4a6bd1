"""The cost of reading an HTTP/1.1 request, in processor time: our two parsers, h11 and httptools.

    python benchmarks/http1_parsers.py [REQUESTS]

Each reads the same GET and the same POST in chunks, again and again on one connection, into a method, a target, a list
of fields with names in lower case, and a body. h11 and httptools are measured where they are installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pilothouse.apiserver.http1.parser import Parsers, chosen_parsers, in_python

ROUNDS = 5
HEAD = (
    b"%b /api/v1/namespaces/default/configmaps/web-7 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\n"
    b"User-Agent: kubectl/v1.36.4 (linux/amd64) kubernetes/8cc511e\r\nAccept: application/json\r\n"
    b"Authorization: Bearer " + b"t" * 200 + b"\r\nAccept-Encoding: gzip\r\n%b\r\n"
)
GET = (HEAD % (b"GET", b""),)
CHUNKS = b"".join(b"400\r\n" + b"x" * 1024 + b"\r\n" for _ in range(8)) + b"0\r\n\r\n"
POST = (HEAD % (b"POST", b"Transfer-Encoding: chunked\r\n"), CHUNKS)

Reads = tuple[bytes, ...]


def ours(parsers: Parsers) -> Callable[[Reads, int], int]:
    def read(reads: Reads, requests: int) -> int:
        parser, size = parsers.request(1 << 20), 0
        for _ in range(requests):
            for data in reads:
                size += sum(len(event) for event in parser.receive(data) if isinstance(event, bytes))
            parser.next_request()
        return size

    return read


def with_h11(reads: Reads, requests: int) -> int:
    """A connection of its own for each request: it would have to write the answers to begin the next one."""
    h11: Any = import_module("h11")
    size = 0
    for _ in range(requests):
        connection = h11.Connection(h11.SERVER)
        for data in reads:
            connection.receive_data(data)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Request):
                    list(event.headers)
                elif isinstance(event, h11.Data):
                    size += len(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    break
    return size


class _Received:
    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self.size += len(body)

    def on_message_complete(self) -> None:
        self.headers = []


def with_httptools(reads: Reads, requests: int) -> int:
    received = _Received()
    parser: Any = import_module("httptools").HttpRequestParser(received)
    for _ in range(requests):
        for data in reads:
            parser.feed_data(data)
        parser.get_method()
    return received.size


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    readers = {
        "zttp": ours(chosen_parsers()),
        "in Python": ours(in_python()),
        "h11": with_h11,
        "httptools": with_httptools,
    }
    for name, reads in (("GET", GET), ("POST of 8 chunks", POST)):
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            for reader, read in readers.items():
                try:
                    started = time.process_time()
                    read(reads, requests)
                except ImportError:
                    continue
                best[reader] = min(best.get(reader, 1e9), (time.process_time() - started) / requests * 1e6)
        print(f"{name:18}" + "".join(f"  {reader} {cost:6.1f} µs" for reader, cost in best.items()))


if __name__ == "__main__":
    main()
