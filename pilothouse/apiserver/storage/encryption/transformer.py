"""The contract of a transformer: from what an object is to what is stored of it, and back.

The key under which a value is stored is bound into it, so that a value moved to another key can not be read there.
"""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Plain:
    value: bytes
    stale: bool = False
    """It would not be stored like this today: by another key, or not encrypted at all."""


class Transformer(Protocol):
    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        """Raises TransformFailed."""

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        """Raises TransformFailed."""
