"""Errors of requests: without a response (ConnectionFailed …) or from an unsuccessful response (StatusError)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.status_error import PilothouseError, StatusError


class ConnectionFailed(PilothouseError):
    """The server was unreachable or the connection broke. The request may or may not have taken effect.

    >>> from pilothouse.client import ClientConfig, connect
    >>> from pilothouse.errors import ConnectionFailed
    >>> try:
    ...     await connect(ClientConfig(host="https://127.0.0.1:1")).request("POST", "/version")
    ... except ConnectionFailed as error:
    ...     print(type(error).__name__)
    ConnectionRefused
    """


class ConnectionRefused(ConnectionFailed):
    """The server refused the connection. The request did not take effect.

    >>> from pilothouse.errors import ConnectionFailed, ConnectionRefused
    >>> issubclass(ConnectionRefused, ConnectionFailed)
    True
    """


class RequestTimedOut(ConnectionFailed):
    """The response did not arrive within the client's timeout.

    >>> from pilothouse.errors import ConnectionFailed, RequestTimedOut
    >>> issubclass(RequestTimedOut, ConnectionFailed)
    True
    """


class InvalidResponse(PilothouseError):
    """The response is not valid for a Kubernetes API.

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
    """Report whether the response had no Status body, only an HTTP code, as for an unknown path."""
    return error.message.startswith(_NO_STATUS)


def error_from(status: int, headers: Mapping[str, str], body: bytes) -> StatusError:
    """Return the error for an unsuccessful response: the server's Status, or a Status derived from the HTTP code.

    Retry-After is stored as `details.retryAfterSeconds`, as upstream's clients expect.
    """
    status_object = status_in(body)
    if status_object is None:
        text = body[:2048].decode("utf-8", "replace").strip()
        known = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown"
        message = f"{_NO_STATUS} {status} {known}" + (f": {text}" if text else "")
        status_object = {"kind": "Status", "code": status, "reason": _REASONS.get(status, ""), "message": message}
    seconds = retry_after(headers)
    if seconds is not None:
        details = {"retryAfterSeconds": seconds, **(status_object.get("details") or {})}
        status_object = {**status_object, "details": details}
    return from_status(status_object, http_code=status)


def retry_after(headers: Mapping[str, str]) -> int | None:
    value = headers.get("retry-after", "")
    return int(value) if value.isdigit() else None
