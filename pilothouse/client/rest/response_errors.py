"""The error that an answer which is no success stands for: the server's Status, or one made from the HTTP code."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.status_error import StatusError

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


_NO_STATUS = "the server answered"


def has_no_status(error: StatusError) -> bool:
    """Return whether the server said no more than an HTTP code, as one does that knows nothing of the path."""
    return error.message.startswith(_NO_STATUS)


def error_from(status: int, headers: Mapping[str, str], body: bytes) -> StatusError:
    """Keeps the Retry-After header in the error's details, where upstream's clients look for it."""
    found = status_in(body)
    if found is None:
        text = body[:2048].decode("utf-8", "replace").strip()
        known = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown"
        message = f"{_NO_STATUS} {status} {known}" + (f": {text}" if text else "")
        found = {"kind": "Status", "code": status, "reason": _REASONS.get(status, ""), "message": message}
    seconds = retry_after(headers)
    if seconds is not None:
        found = {**found, "details": {"retryAfterSeconds": seconds, **(found.get("details") or {})}}
    return from_status(found, http_code=status)


def retry_after(headers: Mapping[str, str]) -> int | None:
    value = headers.get("retry-after", "")
    return int(value) if value.isdigit() else None
