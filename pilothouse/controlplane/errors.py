"""What keeps a server from starting."""

from __future__ import annotations


class StartFailed(Exception):
    """The server could not start, or a hook that it can not do without failed. The message is for people."""
