"""Bounds of the lifetime of requested tokens."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, invalid

_LEAST = 10 * 60
_MOST = 1 << 32


def validate_token_expiration(seconds: int, path: Path) -> Errors:
    if seconds < _LEAST:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")
