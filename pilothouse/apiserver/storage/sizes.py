"""How much one write may carry: as much as etcd takes by default, and as upstream's client sends to it."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.storage.errors import TooLarge

MAX_MESSAGE: Final = 2 * 1024 * 1024
MAX_REQUEST: Final = 3 * 512 * 1024

_FRAME: Final = 32
"""Bytes around a key that is compared and put, and around its value."""


def check_message_size(key: str, value: bytes) -> None:
    """Raises TooLarge for what upstream's client does not even send."""
    size = 2 * len(key) + len(value) + _FRAME
    if size > MAX_MESSAGE:
        why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE})"
        raise TooLarge(f"rpc error: code = ResourceExhausted desc = {why}")


def check_request_size(key: str, value: bytes) -> None:
    """Raises TooLarge for what etcd does not take unless it is told to."""
    check_message_size(key, value)
    if 2 * len(key) + len(value) + _FRAME > MAX_REQUEST:
        raise TooLarge
