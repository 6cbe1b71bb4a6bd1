"""The contract of HTTP/1.1 parsers, and the choice between them.

zttp reads messages unless it cannot be imported, or PILOTHOUSE_HTTP1_PARSER=python says so; then the parser in Python
does. docs/decisions/libraries.md has the reasons and the cost of each.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Final, Protocol, TypeAlias

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http1.framing import Framing
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)

VARIABLE: Final = "PILOTHOUSE_HTTP1_PARSER"
"""Names the parser: `zttp` or `python`."""


class Mark(Enum):
    END = "end"


END: Final = Mark.END
"""The event after the last piece of a body. A request without a body has none."""


@dataclass(slots=True)
class RequestHead:
    method: str
    target: bytes
    headers: Headers
    """With names in lower case."""
    version: str
    """1.0 or 1.1."""
    framing: Framing | None
    """Of the body; None where there is none."""
    keep_alive: bool
    expects_continue: bool


@dataclass(slots=True)
class ResponseHead:
    status: int
    headers: Headers
    """With names in lower case."""


RequestEvent: TypeAlias = RequestHead | bytes | Mark
ResponseEvent: TypeAlias = ResponseHead | bytes | Mark


class RequestParser(Protocol):
    """Reads the requests of one connection, one at a time.

    It is never given bytes beyond the end of a head, or of a body: the head's `framing` says where that may be.
    """

    def receive(self, data: bytes) -> Iterable[RequestEvent]:
        """Return the events that the data completes. Raises BadMessage, then or while they are iterated over.

        After a fault the parser is of no use any more.
        """

    def next_request(self) -> None:
        """Begin with the next head. The request before must be complete."""

    def asks_upgrade(self) -> bool:
        """Whether the current request names a protocol to switch to."""


class ResponseParser(Protocol):
    """Writes the requests and reads the responses of one connection to another server, one exchange at a time."""

    def request(self, method: bytes, target: bytes, headers: Headers) -> bytes:
        """Begin an exchange, and return the head to send. Raises UnsendableRequest."""

    def data(self, data: bytes) -> bytes:
        """Return a piece of the request's body as it is sent."""

    def end(self) -> bytes:
        """Return the end of the request's body as it is sent."""

    def receive(self, data: bytes) -> Iterator[ResponseEvent]:
        """Yield the events that the data completes; empty data is the end of the connection.

        Heads of informational responses are events, too. Raises BadMessage after the events before the fault.
        """

    def should_close(self) -> bool:
        """Whether the response's end is that of the connection."""


class UnsendableRequest(ValueError):
    """A head that must not be sent, such as one with two opinions about its body."""


@dataclass(frozen=True, slots=True)
class Parsers:
    name: str
    request: Callable[[int], RequestParser]
    """Takes the most bytes that a head may have."""
    response: Callable[[], ResponseParser]


def chosen_parsers() -> Parsers:
    """Return the parsers for new connections."""
    return in_python() if os.environ.get(VARIABLE) == "python" else _best()


@cache
def _best() -> Parsers:
    try:
        from pilothouse.apiserver.http1.with_zttp import ZttpRequestParser, ZttpResponseParser
    except ImportError as error:
        log.warning("zttp cannot be imported (%s): HTTP/1.1 is read by the slower parser in Python", error)
        return in_python()
    return Parsers("zttp", ZttpRequestParser, ZttpResponseParser)


def in_python() -> Parsers:
    from pilothouse.apiserver.http1.in_python import PythonRequestParser, PythonResponseParser

    return Parsers("python", PythonRequestParser, PythonResponseParser)
