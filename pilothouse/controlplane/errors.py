"""The error of a server that cannot start."""

from __future__ import annotations


class StartFailed(Exception):
    """The server could not start, or a hook that it can not do without failed. The message is for people."""
