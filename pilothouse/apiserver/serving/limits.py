"""Limits on what one client may cost: bytes, and seconds that are kept to about a tick of the server's clock."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    header_bytes: int = 1 << 20
    """A request head over this is answered 431."""
    header_timeout: float = 32.0
    """From the first byte that is awaited to the end of the head."""
    body_timeout: float = 60.0
    """From the head to the end of the body."""
    idle_timeout: float = 90.0
    """How long a connection without a request is kept."""
    handshake_timeout: float = 10.0
    write_timeout: float = 30.0
    """How long an answer may wait for a client that does not read. Then its stream or connection is closed."""
    linger: float = 1.0
    """How long a client that was refused while it still sent, or told to go away, may take to read why."""
    connections: int = 0
    """0 is no limit. A connection over it is closed before its TLS handshake."""
    http2_streams: int = 100
    """Concurrent streams of one HTTP/2 connection."""
