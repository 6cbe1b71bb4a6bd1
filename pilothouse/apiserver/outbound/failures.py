"""Connection failures, with the messages of Go's net, crypto/tls and net/http, which users search for. Each text is
defined once, in this module."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final

from pilothouse.apiserver.http import StreamBroken
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.outbound.tls import hostname_problem
from pilothouse.machinery.gofmt import quote

DEADLINE_EXCEEDED: Final = "context deadline exceeded"
SERVER_SHUTTING_DOWN: Final = "http2: the server is shutting down"
UNREACHABLE_SERVICE: Final = "error trying to reach service: "

_UNVERIFIED: Final = "tls: failed to verify certificate: x509"
_UNKNOWN_AUTHORITY: Final = "certificate signed by unknown authority"
_OUT_OF_TIME: Final = "certificate has expired or is not yet valid"
_OTHER_TIME: Final = frozenset({9, 10})
_BY_VERIFY_CODE: Final = {
    **dict.fromkeys((2, 7, 18, 19, 20, 21), _UNKNOWN_AUTHORITY),
    **dict.fromkeys(_OTHER_TIME, _OUT_OF_TIME),
}
"""OpenSSL verify code → message."""
_OTHER_NAME: Final = frozenset({62, 64})
"""OpenSSL's codes for host name and IP address mismatches."""
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons for a non-TLS peer."""


class BackendFailed(StreamBroken):
    """The server disconnected, or violated HTTP.

    `unanswered`: before any response. `unprocessed`: the server reports that the request was not processed.
    """

    def __init__(self, why: str, *, unanswered: bool = False, unprocessed: bool = False) -> None:
        super().__init__(why)
        self.unanswered = unanswered
        self.unprocessed = unprocessed


class DialFailed(BackendFailed):
    """The connection attempt failed. `target` has the tried address; `certificate` is the DER certificate of a name
    mismatch."""

    def __init__(self, cause: OSError, target: Target, certificate: bytes = b"") -> None:
        super().__init__(dial_problem(cause, target, certificate))
        self.cause = cause
        self.target = target


def dial_problem(error: OSError, target: Target, certificate: bytes = b"") -> str:
    """Return the dial error in the words of Go's net, crypto/tls and net/http."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {target.connect_host}: no such host"
    if isinstance(error, ssl.SSLError):
        return tls_problem(error, target.server_name or target.host, certificate)
    place = f"dial tcp {target.connect_authority}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"{place}: i/o timeout"
    if error.errno is not None:
        assert error.errno is not None
        return f"{place}: connect: {os.strerror(error.errno).lower()}"
    return "EOF" if isinstance(error, ConnectionError) else f"{place}: {error}"


def tls_problem(error: ssl.SSLError, wanted: str, certificate: bytes = b"") -> str:
    """Return the TLS error. `wanted` is the expected name, `certificate` the presented certificate."""
    if is_other_name(error):
        return f"{_UNVERIFIED}: {hostname_problem(certificate, wanted)}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{_UNVERIFIED}: {_BY_VERIFY_CODE.get(error.verify_code, error.verify_message)}"
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    if error.reason in _NO_TLS:
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {error.reason}"


def is_other_name(error: BaseException) -> bool:
    """Return whether the certificate is valid for a different name."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OTHER_NAME


def is_out_of_time(error: BaseException) -> bool:
    """Return whether the certificate is expired or not yet valid."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OTHER_TIME


def broken_connection(error: Exception | None) -> str:
    """Return the reason of a lost connection."""
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(error, ssl.SSLError):
        return tls_problem(error, "")
    return str(error) if error and str(error) else "EOF"


def get_problem(error: BackendFailed, target: Target) -> str:
    """Return the failure of a GET in the words of net/http's client."""
    return f"Get {quote(target.url)}: {error}"
