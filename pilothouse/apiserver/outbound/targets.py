"""A place that a request goes to."""

from __future__ import annotations

import ssl
from urllib.parse import quote as escape
from urllib.parse import urlsplit

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass

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
        return f"{_bracketed(self.host)}:{self.port}" if self.port else _bracketed(self.host)

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

    @property
    def connect_authority(self) -> str:
        """The host and port that connections go to, as Go's net package writes them."""
        return f"{_bracketed(self.connect_host)}:{self.connect_port}"


@bounded_cache(entries=4096, key_bytes=512)
def escaped_path(path: str) -> str:
    """A request's path as it may stand in the request line again: there it was decoded."""
    return escape(path, safe=_UNESCAPED)


def target_of(url: str, *, tls: ssl.SSLContext | None) -> Target:
    """Raises ValueError for what names no server."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host:
        raise ValueError("http: no Host in request URL")
    named = host if host.isascii() else host.encode("idna").decode("ascii")
    path, query = (escape(part, safe=f"%?{_UNESCAPED}") for part in (parts.path, parts.query))
    return Target(named, parts.port or 0, path or "/", query, tls=tls)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
