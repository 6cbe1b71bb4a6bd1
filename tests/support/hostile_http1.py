"""Clients that turn HTTP/1.1 against a server, without credentials. `play_http1` plays one of the `REQUESTS`."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from hostile_http2 import MEGABYTE, Outcome
from patience import PATIENCE

_PIECE = 64 << 10
_ROOM = MEGABYTE - 2000


@dataclass(frozen=True, slots=True)
class LargeRequest:
    request: Callable[[], bytes]
    status: int
    """Of a good server's answer to somebody it does not know; 0 where it just hangs up."""


def _get(target: str, fields: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


def query_string() -> bytes:
    return _get("/api/v1/pods?" + "a=b&" * (_ROOM // 4))


def escaped_query_string() -> bytes:
    return _get("/api/v1/pods?a=" + "%41" * (_ROOM // 3))


def query_string_of_a_selector() -> bytes:
    return _get("/api/v1/pods?fieldSelector=" + "a=b," * (_ROOM // 4))


def escaped_path() -> bytes:
    return _get("/" + "%41" * (_ROOM // 3))


def short_fields() -> bytes:
    return _get("/livez", "a:\r\n" * (_ROOM // 4))


def long_fields() -> bytes:
    return _get("/livez", f"a: {'b' * 100}\r\n" * (_ROOM // 106))


def _chunked(body: bytes) -> bytes:
    return b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def tiny_chunks() -> bytes:
    return _chunked(b"1\r\na\r\n" * (MEGABYTE // 6) + b"0\r\n\r\n")


def empty_lines_in_chunks() -> bytes:
    """Each might be the end of the body."""
    return _chunked((b"4000\r\n" + b"\r\n\r\n" * 0x1000 + b"\r\n") * 64 + b"0\r\n\r\n")


def chunk_extensions() -> bytes:
    return _chunked((b"1;" + b"x" * 10_000 + b"\r\na\r\n") * 100 + b"0\r\n\r\n")


def pipelined_requests() -> bytes:
    return _get("/") * 20_000


REQUESTS = {
    "query string": LargeRequest(query_string, 400),
    "escaped query string": LargeRequest(escaped_query_string, 403),
    "query string of a selector": LargeRequest(query_string_of_a_selector, 403),
    "escaped path": LargeRequest(escaped_path, 403),
    "short fields": LargeRequest(short_fields, 431),
    "long fields": LargeRequest(long_fields, 200),
    "tiny chunks": LargeRequest(tiny_chunks, 403),
    "empty lines in chunks": LargeRequest(empty_lines_in_chunks, 403),
    "chunk extensions": LargeRequest(chunk_extensions, 403),
    "pipelined requests": LargeRequest(pipelined_requests, 403),
}


async def play_http1(large: LargeRequest, host: str, port: int, context: ssl.SSLContext) -> Outcome:
    """Sends the request and reads the first answer. `context` speaks http/1.1."""
    data, said = large.request(), Outcome()
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        answer = asyncio.create_task(reader.readline())
        try:
            for at in range(0, len(data), _PIECE):
                if answer.done() and at > MEGABYTE // 2:
                    break
                writer.write(data[at : at + _PIECE])
                await writer.drain()
            said.statuses.append(int((await answer).split()[1]))
        except (ConnectionError, IndexError):
            said.closed = True
            answer.cancel()
        finally:
            writer.transport.abort()
    return said
