"""What goes wrong between this server and another, in the words of Go's net, crypto/tls and net/http: people search for
them. Each text stands here once.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final

from pilothouse.apiserver.http import StreamBroken
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.machinery.gofmt import quote

DEADLINE_EXCEEDED: Final = "context deadline exceeded"
SERVER_SHUTTING_DOWN: Final = "http2: the server is shutting down"
UNREACHABLE_SERVICE: Final = "error trying to reach service: "

_UNKNOWN_AUTHORITY: Final = "certificate signed by unknown authority"
_OUT_OF_TIME: Final = "certificate has expired or is not yet valid"
_BY_VERIFY_CODE: Final = {
    **dict.fromkeys((2, 7, 18, 19, 20, 21), _UNKNOWN_AUTHORITY),
    **dict.fromkeys((9, 10), _OUT_OF_TIME),
}
"""By OpenSSL's numbers."""
_OTHER_NAME: Final = frozenset({62, 64})
"""OpenSSL's numbers for a host name and for an IP address that do not match."""
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


class BackendFailed(StreamBroken):
    """The other server went away, or spoke no HTTP.

    `unanswered`: before it had said anything. `unprocessed`: it says that it has not looked at the request.
    """

    def __init__(self, why: str, *, unanswered: bool = False, unprocessed: bool = False) -> None:
        super().__init__(why)
        self.unanswered = unanswered
        self.unprocessed = unprocessed


class DialFailed(BackendFailed):
    """No connection could be made. `target` has the address that was tried."""

    def __init__(self, cause: OSError, target: Target) -> None:
        super().__init__(dial_problem(cause, target))
        self.cause = cause
        self.target = target


def dial_problem(error: OSError, target: Target) -> str:
    """Why there is no connection, as the net and crypto/tls packages say it."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {target.connect_host}: no such host"
    if isinstance(error, ssl.SSLError):
        return tls_problem(error, target.server_name or target.host)
    place = f"dial tcp {target.connect_authority}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"{place}: i/o timeout"
    if error.errno is not None:
        return f"{place}: connect: {_errno_text(error)}"
    return "EOF" if isinstance(error, ConnectionError) else f"{place}: {error}"


def tls_problem(error: ssl.SSLError, wanted: str) -> str:
    """`wanted`: whom the certificate was to be for."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return certificate_problem(_certificate_problem(error, wanted))
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    if is_no_tls(error):
        return "tls: first record does not look like a TLS handshake"
    return f"remote error: tls: {error.reason}"


def certificate_problem(what: str) -> str:
    return f"tls: failed to verify certificate: x509: {what}"


def _certificate_problem(error: ssl.SSLCertVerificationError, wanted: str) -> str:
    if is_other_name(error):
        return f"certificate is not valid for {wanted}"
    return _BY_VERIFY_CODE.get(error.verify_code, error.verify_message)


def is_other_name(error: BaseException) -> bool:
    """Whether a certificate is good, but for somebody else."""
    return isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OTHER_NAME


def is_no_tls(error: BaseException) -> bool:
    """Whether the other side answered a handshake in another protocol."""
    return isinstance(error, ssl.SSLError) and error.reason in _NO_TLS


def broken_connection(error: Exception | None) -> str:
    """Why a connection that stood is gone."""
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(error, ssl.SSLError):
        return tls_problem(error, "")
    return str(error) if error and str(error) else "EOF"


def get_problem(error: BackendFailed, target: Target) -> str:
    """As net/http's client says it of a GET."""
    return f"Get {quote(target.url)}: {error}"


def _errno_text(error: OSError) -> str:
    assert error.errno is not None
    return os.strerror(error.errno).lower()
