"""What went wrong with a call, in the words of Go's net/http and client-go, which is what people search for."""

from __future__ import annotations

import os
import socket
import ssl

import orjson

from pilothouse.machinery.errors import StatusError, from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

DEADLINE_EXCEEDED = "context deadline exceeded"
_MAX_TEXT = 2048
_UNEXPECTED = "UnexpectedServerResponse"
_UNKNOWN_AUTHORITY = "certificate signed by unknown authority"
_X509_CODES = {
    7: _UNKNOWN_AUTHORITY,
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
}
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
_STATUS: dict[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", ""),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("AlreadyExists", "the server reported a conflict"),
    415: ("UnsupportedMediaType", ""),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
"""By HTTP code: the reason, and the message; an empty message is the server's own."""


class WebhookCallFailed(Exception):
    """`status` is there when the webhook answered, but with no success."""

    def __init__(self, text: str, *, status: StatusError | None = None) -> None:
        super().__init__(text)
        self.status = status


def connect_problem(error: BaseException, dialled: str) -> str:
    """`dialled` is the address that the connection was to go to."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {dialled}: no such host"
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _X509_CODES.get(error.verify_code, error.verify_message)
        return f"tls: failed to verify certificate: x509: {known}"
    if isinstance(error, ssl.SSLError):
        no_tls = error.reason in _NO_TLS
        return "http: server gave HTTP response to HTTPS client" if no_tls else f"remote error: tls: {error.reason}"
    if isinstance(error, OSError) and error.errno is not None:
        return f"dial tcp {dialled}: connect: {_errno_text(error)}"
    return "EOF"


def connection_lost(error: BaseException) -> str:
    """After the connection stood."""
    if isinstance(error, ConnectionResetError) and error.errno is not None:
        return f"read: {_errno_text(error)}"
    return "EOF"


def refused(code: int, content_type: str, body: bytes) -> WebhookCallFailed:
    """For an answer that is no success: the Status in it, or one made from the HTTP code."""
    said = _status_in(body)
    error = from_status(said, http_code=code) if said is not None else _generic(code, content_type, body)
    return WebhookCallFailed(error.message, status=error)


def _generic(code: int, content_type: str, body: bytes) -> StatusError:
    is_text = not content_type or content_type.startswith("text/")
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip() if is_text else "unknown"
    reason, message = _STATUS.get(
        code, ("", f"the server responded with the status code {code} but did not return more information")
    )
    if code == 406 and text not in ("", "unknown"):
        message = text
    elif code >= 500 and code not in _STATUS:
        reason, message = (
            "InternalError",
            f"an error on the server ({quote(text)}) has prevented the request from succeeding",
        )
    details = {"causes": [{"reason": _UNEXPECTED, "message": text}]}
    return from_status({"reason": reason, "message": message or text, "code": code, "details": details})


def _status_in(body: bytes) -> Json | None:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    is_failure = isinstance(found, dict) and found.get("kind") == "Status" and found.get("status") == "Failure"
    return found if is_failure else None


def _errno_text(error: OSError) -> str:
    assert error.errno is not None
    return os.strerror(error.errno).lower()
