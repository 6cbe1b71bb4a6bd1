"""Size limits of a write: etcd's default, and the limit of upstream's client."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.storage.errors import TooLarge

MAX_MESSAGE: Final = 2 * 1024 * 1024
MAX_REQUEST: Final = 3 * 512 * 1024

_FRAME: Final = 32
"""Overhead of a compared and written key with its value."""


def check_message_size(key: str, value: bytes) -> None:
    """Raise TooLarge for messages that upstream's client refuses to send."""
    size = 2 * len(key) + len(value) + _FRAME
    if size > MAX_MESSAGE:
        why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
        raise TooLarge(f"rpc error: code = ResourceExhausted desc = {why}")


def check_request_size(key: str, value: bytes) -> None:
    """Raise TooLarge for requests that etcd refuses by default."""
    check_message_size(key, value)
    if 2 * len(key) + len(value) + _FRAME > MAX_REQUEST:
        raise TooLarge
