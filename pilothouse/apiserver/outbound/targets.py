"""Request targets."""

from __future__ import annotations

import ssl
from urllib.parse import quote as escape
from urllib.parse import urlsplit

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass

_UNESCAPED = "$&+,/:;=@~"
"""Unescaped characters in paths, as in Go."""


@dataclass(frozen=True, slots=True)
class Target:
    """A request target. `path` is escaped; `tls` None = plain HTTP; port 0 = the scheme's default."""

    host: str
    port: int
    path: str
    query: str = ""
    tls: ssl.SSLContext | None = None
    timeout: float = 30.0
    """Connect timeout in seconds."""
    server_name: str = ""
    """Expected name of the certificate; empty = the host."""
    address: str = ""
    """Resolved and permitted address of the host; skips the lookup."""

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
        """Return path and query for the request line."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def connect_host(self) -> str:
        return self.address or self.host

    @property
    def connect_port(self) -> int:
        return self.port or (443 if self.tls else 80)

    @property
    def connect_authority(self) -> str:
        """Return host:port of the connection, formatted like Go's net package."""
        return f"{_bracketed(self.connect_host)}:{self.connect_port}"


@bounded_cache(entries=4096, key_bytes=512)
def escaped_path(path: str) -> str:
    """Escape a decoded path for the request line."""
    return escape(path, safe=_UNESCAPED)


def target_of(url: str, *, tls: ssl.SSLContext | None) -> Target:
    """Parse a URL. Raises ValueError without a host."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host:
        raise ValueError("http: no Host in request URL")
    named = host if host.isascii() else host.encode("idna").decode("ascii")
    path, query = (escape(part, safe=f"%?{_UNESCAPED}") for part in (parts.path, parts.query))
    return Target(named, parts.port or 0, path or "/", query, tls=tls)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
