"""The errors of requests that the server did not answer. Those that it answers with are in `machinery/errors.py` and
`machinery/server_errors.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.status_error import PilothouseError, StatusError


class ConnectionFailed(PilothouseError):
    """The server could not be reached, or the connection broke off. Whether a request took effect is unknown.

    >>> from pilothouse.client import ClientConfig, connect
    >>> from pilothouse.errors import ConnectionFailed
    >>> try:
    ...     await connect(ClientConfig(host="https://127.0.0.1:1")).request("POST", "/version")
    ... except ConnectionFailed as error:
    ...     print(type(error).__name__)
    ConnectionRefused
    """


class ConnectionRefused(ConnectionFailed):
    """Nobody listens there: the request did not take effect.

    >>> from pilothouse.errors import ConnectionFailed, ConnectionRefused
    >>> issubclass(ConnectionRefused, ConnectionFailed)
    True
    """


class RequestTimedOut(ConnectionFailed):
    """The answer did not come within the client's own time limit.

    >>> from pilothouse.errors import ConnectionFailed, RequestTimedOut
    >>> issubclass(RequestTimedOut, ConnectionFailed)
    True
    """


class InvalidResponse(PilothouseError):
    """The answer is not what a Kubernetes API sends.

    >>> from pilothouse.errors import InvalidResponse
    >>> try:
    ...     await client.get_json("/readyz")
    ... except InvalidResponse as error:
    ...     print(error)
    GET /readyz did not answer JSON: ...
    """


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
