"""A place that a request is passed on to, and what Go says when it cannot be reached."""

from __future__ import annotations

import asyncio
import socket
import ssl
from urllib.parse import quote as escape

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

# OpenSSL's numbers.
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_OUT_OF_TIME = frozenset({9, 10})
_OTHER_NAME = frozenset({62, 64})
_UNESCAPED = "$&+,/:;=@~"
"""In paths, as Go has it."""


@dataclass(frozen=True, slots=True)
class Target:
    """`path` is escaped; `tls` is None for plain HTTP; the port is 0 where none is known, and then the scheme's own."""

    host: str
    port: int
    path: str
    query: str = ""
    tls: ssl.SSLContext | None = None
    timeout: float = 30.0
    """Seconds until a connection must stand."""
    server_name: str = ""
    """Whom the certificate must be for, if not for the host."""
    address: str = ""
    """Where the host was found and may be: it is not looked up again."""

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else host

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.resource}"

    @property
    def resource(self) -> str:
        """Path and query, as the request line has them."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def connect_host(self) -> str:
        return self.address or self.host

    @property
    def connect_port(self) -> int:
        return self.port or (443 if self.tls else 80)


@bounded_cache(entries=4096, key_bytes=512)
def escaped_path(path: str) -> str:
    """A request's path as it may stand in the request line again: there it was decoded."""
    return escape(path, safe=_UNESCAPED)


def dial_problem(error: BaseException, target: Target) -> str:
    """In the words of Go's net package."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {target.host}: no such host"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate_problem(error, target)}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    place = f"dial tcp {_joined(target)}"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return f"{place}: i/o timeout"
    if isinstance(error, ConnectionRefusedError):
        return f"{place}: connect: connection refused"
    if isinstance(error, OSError) and error.strerror:
        return f"{place}: connect: {error.strerror.lower()}"
    return f"{place}: {error}"


def _certificate_problem(error: ssl.SSLCertVerificationError, target: Target) -> str:
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if error.verify_code in _OUT_OF_TIME:
        return "certificate has expired or is not yet valid"
    if error.verify_code in _OTHER_NAME:
        return f"certificate is not valid for {target.server_name or target.host}"
    return error.verify_message


def get_problem(error: BaseException, target: Target) -> str:
    """In the words of Go's HTTP client."""
    return f"Get {quote(target.url)}: {dial_problem(error, target)}"


def _joined(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.connect_port}"
