"""The contract of HTTP/1.1 parsers, and their selection.

zttp is the default. The parser in Python is used if zttp is not importable, or with PILOTHOUSE_HTTP1_PARSER=python. See
docs/decisions/libraries.md for reasons and costs.
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
"""Environment variable that selects the parser: `zttp` or `python`."""


class Mark(Enum):
    END = "end"


END: Final = Mark.END
"""Event after the last piece of a body; absent for requests without body."""


@dataclass(slots=True)
class RequestHead:
    method: str
    target: bytes
    headers: Headers
    """Lower-case names."""
    version: str
    """1.0 or 1.1."""
    framing: Framing | None
    """Framing of the body; None without body."""
    keep_alive: bool
    expects_continue: bool


@dataclass(slots=True)
class ResponseHead:
    status: int
    headers: Headers
    """Lower-case names."""


RequestEvent: TypeAlias = RequestHead | bytes | Mark
ResponseEvent: TypeAlias = ResponseHead | bytes | Mark


class RequestParser(Protocol):
    """Parses the requests of a connection, one at a time.

    Callers must not pass bytes beyond the end of a head or body; the head's `framing` finds the end.
    """

    def receive(self, data: bytes) -> Iterable[RequestEvent]:
        """Return the events completed by the data. Raises BadMessage, immediately or during iteration.

        The parser is unusable after an error.
        """

    def next_request(self) -> None:
        """Start the next head; the previous request must be complete."""

    def asks_upgrade(self) -> bool:
        """Return whether the current request asks for an upgrade."""


class ResponseParser(Protocol):
    """Encodes requests and parses responses of a client connection, one exchange at a time."""

    def request(self, method: bytes, target: bytes, headers: Headers) -> bytes:
        """Start an exchange, and return the encoded head. Raises UnsendableRequest."""

    def data(self, data: bytes) -> bytes:
        """Encode a piece of the request's body."""

    def end(self) -> bytes:
        """Encode the end of the request's body."""

    def receive(self, data: bytes) -> Iterator[ResponseEvent]:
        """Yield the events completed by the data; empty data is the end of the connection.

        Heads of informational responses are events, too. Raises BadMessage after the events before the error.
        """

    def should_close(self) -> bool:
        """Return whether the connection closes after the response."""


class UnsendableRequest(ValueError):
    """An invalid request head, such as with conflicting framing."""


@dataclass(frozen=True, slots=True)
class Parsers:
    name: str
    request: Callable[[int], RequestParser]
    """Build a parser with the maximum head size."""
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
