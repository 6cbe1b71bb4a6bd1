"""Errors of request bodies, with the messages of upstream's decoders.

Strict failures (unknown and duplicate fields) are reported as Go does: in the order of the text, each once, at most
100. A DocumentPlace links to its parent, so descending is cheap, and a path is built only for a reported place.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind

_EXCERPT_LENGTH = 30


class BodyError(ValueError):
    """An undecodable body. gvk: kind named by the body, if readable."""

    def __init__(self, message: str, gvk: GroupVersionKind | None = None) -> None:
        super().__init__(message)
        self.gvk = gvk


def strict_error(errors: tuple[str, ...]) -> str:
    return "strict decoding error: " + ", ".join(errors)


def strict_refusal(gvk: GroupVersionKind, default: GroupVersionKind, errors: tuple[str, ...]) -> BadRequest:
    """Return the error of a request with fieldValidation=Strict whose body has strict errors."""
    return BadRequest(_cannot_be_handled(gvk, default, strict_error(errors)))


def refusal(error: BodyError, default: GroupVersionKind, data: bytes) -> BadRequest:
    """Return the error of a create or update whose body cannot be decoded."""
    if error.gvk is not None and error.gvk.kind:
        return BadRequest(_cannot_be_handled(error.gvk, default, str(error)))
    summary = f"the object provided is unrecognized (must be of type {default.kind})"
    return BadRequest(f"{summary}: {error} ({_excerpt(data)})")


def _cannot_be_handled(gvk: GroupVersionKind, default: GroupVersionKind, reason: str) -> str:
    return f"{gvk.kind} in version {quote(gvk.version)} cannot be handled as a {default.kind}: {reason}"


def _excerpt(data: bytes) -> str:
    if not data:
        return "<empty>"
    start = data[:_EXCERPT_LENGTH]
    text = start.decode("utf-8", "replace") if data.startswith(b"{") else start.hex()
    return f"{text} ..." if len(data) > _EXCERPT_LENGTH else text


CONVERTING = "error converting YAML to JSON: "
UNMARSHAL_ERRORS = "yaml: unmarshal errors:"

MOST_FAILURES = 100
_MOST_TEXT = 1 << 20
"""Characters. A path is as long as its keys, so a hundred paths could be a hundred times as long as the body."""


class DocumentPlace:
    """Place of a value in a document; `piece` is the key or index within `outer`."""

    __slots__ = ("outer", "piece")

    def __init__(self, outer: DocumentPlace | None = None, piece: str | int = "") -> None:
        self.outer = outer
        self.piece = piece

    @property
    def path(self) -> str:
        """`spec.containers[0].name`; empty for the document itself."""
        pieces = (f".{piece}" if isinstance(piece, str) else f"[{piece}]" for piece in self.pieces)
        return "".join(pieces).removeprefix(".")

    @property
    def pieces(self) -> list[str | int]:
        """Keys and indexes on the path from the document to this place."""
        pieces, place = [], self
        while place.outer is not None:
            pieces.append(place.piece)
            place = place.outer
        return pieces[::-1]


class StrictFailures:
    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._room = _MOST_TEXT

    def note(self, failure: str, place: DocumentPlace) -> None:
        if not self.full:
            message = f"{failure} field {quote(place.path)}"
            self._room -= len(message)
            self._found[message] = None

    @property
    def full(self) -> bool:
        return len(self._found) >= MOST_FAILURES or self._room < 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)


def strict_warnings(strict_error: str) -> list[str]:
    """Split an error of strict decoding into upstream's warnings: one per line of a YAML error.

    >>> from pilothouse.machinery.codec.body_errors import strict_warnings
    >>> strict_warnings('yaml: unmarshal errors:\\n  line 2: key "a" already set in map')
    ['line 2: key "a" already set in map']
    """
    text = strict_error.removeprefix(f"{CONVERTING}{UNMARSHAL_ERRORS}\n")
    text = text.removeprefix(f"{UNMARSHAL_ERRORS}\n")
    return [line.strip() for line in text.split("\n")]
