"""The cost of a GET over HTTP/2 without socket and TLS, in processor time: our connection against the h2 package.

    python benchmarks/http2_codecs.py [REQUESTS]

Both get the same bytes from a client and answer each request with the same head and 1 kB. h2 only turns bytes into
events and answers into bytes; ours also parses the target, makes the Request and runs its handler in a task.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

import h2
import h2.config
import h2.connection
import h2.events
import hpack
import uvloop

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.serving.http2_connection import Http2Connection
from pilothouse.apiserver.serving.limits import Limits
from pilothouse.apiserver.serving.state import ServingState

ROUNDS = 5
AT_ONCE = (1, 10)
"""Requests that come in one read."""
BODY = b"x" * 1000
NAMED = [
    ("user-agent", "kubectl/v1.36.4 (linux/amd64) kubernetes/8cc511e"),
    ("accept", "application/json"),
    ("authorization", "Bearer " + "t" * 200),
    ("accept-encoding", "gzip"),
]
HEAD = [
    (b"audit-id", b"6c3d1f7e-6f0b-4a53-8f0e-0d9b6b7f5c11"),
    (b"cache-control", b"no-cache, private"),
    (b"content-type", b"application/json"),
    (b"x-kubernetes-pf-flowschema-uid", b"2f7f4e7d-55f7-4a1c-9d58-f1d6c1f1b5a0"),
    (b"x-kubernetes-pf-prioritylevel-uid", b"9a1c5d1e-8f4f-4b1b-93f8-6c8fb0a5a1e7"),
]

Reads: TypeAlias = list[bytes]
Serve: TypeAlias = Callable[[Reads], Awaitable[int]]
"""Answers what is read. Returns how many bytes were written."""


def client(requests: int, at_once: int) -> Reads:
    """Return the bytes of a client: its greeting, with credit for all answers, and then its requests."""
    encoder = hpack.Encoder()
    reads = [frames.PREFACE + frames.settings({}) + frames.window_update(0, 1 << 30)]
    for number in range(requests):
        path = f"/api/v1/namespaces/default/configmaps/web-{number % 32}"
        pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "127.0.0.1:6443"), (":path", path)]
        block = encoder.encode([*pseudo, *NAMED])
        head = frames.header_frames(2 * number + 1, block, end_stream=True, frame_size=frames.DEFAULT_FRAME_SIZE)
        if number % at_once:
            reads[-1] += head
        else:
            reads.append(head)
    return reads


def with_h2(config: h2.config.H2Configuration) -> Serve:
    async def serve(reads: Reads) -> int:
        wire = h2.connection.H2Connection(config)
        wire.initiate_connection()
        written = len(wire.data_to_send())
        head = [(b":status", b"200"), (b"date", b"Thu, 01 Jan 2026 00:00:00 GMT"), *HEAD, (b"content-length", b"1000")]
        for data in reads:
            for event in wire.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    wire.send_headers(event.stream_id, head)
                    wire.send_data(event.stream_id, BODY, end_stream=True)
            written += len(wire.data_to_send())
        return written

    return serve


class _Counting:
    """A transport that counts what is written."""

    written = 0

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def is_closing(self) -> bool:
        return False


async def with_ours(reads: Reads) -> int:
    async def answer(request: Request) -> Response:
        return Response(200, BODY, HEAD)

    transport = _Counting()
    connection = Http2Connection(ServingState(answer, Limits()), asyncio.get_running_loop())
    connection.connection_made(cast("asyncio.Transport", transport))
    for data in reads:
        connection.data_received(data)
        await asyncio.sleep(0)  # the handlers' turn
        await asyncio.sleep(0)  # the writing's
    return transport.written


WAYS: dict[str, Serve] = {
    "ours": with_ours,
    "h2": with_h2(h2.config.H2Configuration(client_side=False)),
    "h2 without its checks": with_h2(
        h2.config.H2Configuration(
            client_side=False,
            header_encoding=None,
            validate_inbound_headers=False,
            normalize_inbound_headers=False,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
    ),
}


async def microseconds(serve: Serve, reads: Reads, requests: int) -> float:
    """Of processor time, for a request."""
    begun = time.process_time()
    written = await serve(reads)
    spent = time.process_time() - begun
    assert written > requests * len(BODY), "not every request was answered"
    return spent / requests * 1e6


async def measure(requests: int) -> None:
    print(f"h2 {h2.__version__}; {requests} requests, the best of {ROUNDS} rounds that take turns")
    for at_once in AT_ONCE:
        reads = client(requests, at_once)
        best = dict.fromkeys(WAYS, float("inf"))
        for _ in range(ROUNDS):
            for name, serve in WAYS.items():
                best[name] = min(best[name], await microseconds(serve, reads, requests))
        for name, cost in best.items():
            print(f"{at_once:3} in a read  {name:22} {cost:7.1f} µs a request  {cost / best['ours']:5.1f} times ours")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
