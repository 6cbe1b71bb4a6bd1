"""What can go wrong before the server has said anything. What the server says is in pilothouse.machinery.errors."""

from __future__ import annotations

from pilothouse.machinery.errors import PilothouseError


class ConnectionFailed(PilothouseError):
    """The server could not be reached, or the connection broke off. Whether a request took effect is unknown."""


class ConnectionRefused(ConnectionFailed):
    """Nobody listens there: the request did not take effect."""


class RequestTimedOut(ConnectionFailed):
    """The answer did not come within the client's own time limit."""


class InvalidResponse(PilothouseError):
    """The answer is not what a Kubernetes API sends."""
