"""API errors by reason, and conversion of a Status object to its error."""

from __future__ import annotations

import orjson

from pilothouse.machinery import errors as refusals
from pilothouse.machinery import server_errors
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_API_ERRORS: tuple[type[StatusError], ...] = (
    refusals.BadRequest,
    refusals.Unauthorized,
    refusals.Forbidden,
    refusals.NotFound,
    refusals.MethodNotAllowed,
    refusals.NotAcceptable,
    refusals.AlreadyExists,
    refusals.Conflict,
    refusals.Gone,
    refusals.Expired,
    refusals.RequestEntityTooLarge,
    refusals.UnsupportedMediaType,
    refusals.Invalid,
    server_errors.TooManyRequests,
    server_errors.InternalError,
    server_errors.ServerTimeout,
    server_errors.ServiceUnavailable,
    server_errors.Timeout,
)
_BY_REASON = {error.reason: error for error in _API_ERRORS}


def from_status(status: Json, *, http_code: int = 500) -> StatusError:
    """Return the error described by a Status: the class of its reason, or a StatusError with that reason.

    `http_code` is used if the Status has no code.
    """
    cls = _BY_REASON.get(status.get("reason") or "", StatusError)
    error = cls(status.get("message") or "", code=status.get("code") or http_code, details=status.get("details"))
    if cls is StatusError and status.get("reason"):
        error.__dict__["reason"] = status["reason"]
    return error


def status_in(body: bytes) -> Json | None:
    """Return the Status in a response body, or None."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and value.get("kind") == "Status" else None
