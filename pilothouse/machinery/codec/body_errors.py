"""Errors for request bodies that cannot be decoded, in the words of upstream's decoders."""

from __future__ import annotations

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind

_EXCERPT_LENGTH = 30


class BodyError(ValueError):
    """The body cannot be decoded. `gvk` is the kind that the body names, as far as that could be read."""

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
