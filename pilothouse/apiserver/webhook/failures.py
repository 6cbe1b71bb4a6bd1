"""What went wrong with a call, in the words of Go's net/http and client-go, which is what people search for."""

from __future__ import annotations

import os
import socket
import ssl

import orjson

from pilothouse.machinery.errors import StatusError, from_status
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_response import generic_response

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
    meant = generic_response(code, text, method="POST")
    details = {"causes": [{"reason": _UNEXPECTED, "message": text}]}
    return from_status({"reason": meant.reason, "message": meant.message, "code": code, "details": details})


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
