"""Per-client limits: bytes, timeouts with the resolution of the server's clock tick, and TCP keep-alive."""

from __future__ import annotations

import socket

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    header_bytes: int = 1 << 20
    """Maximum head size; larger heads get 431."""
    header_timeout: float = 32.0
    """Seconds to receive a complete head."""
    body_timeout: float = 60.0
    """Seconds from the head to the end of the body."""
    idle_timeout: float = 90.0
    """Idle timeout of a connection."""
    handshake_timeout: float = 10.0
    write_timeout: float = 30.0
    """Seconds that a response waits for a client that does not read, before its stream or connection is closed."""
    linger: float = 1.0
    """Seconds for a client to read a refusal or GOAWAY before the close."""
    connections: int = 0
    """Maximum connections; 0 = unlimited. Excess connections are closed before the TLS handshake."""
    http2_streams: int = 100
    """Maximum concurrent streams per HTTP/2 connection."""


def keep_alive(connection: socket.socket, seconds: int = 180) -> None:
    """Detect vanished peers by TCP keep-alive."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
