"""Stored objects that the server reads for itself: however large they are, nobody waits while they are parsed."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json


async def parse_all(stored: Sequence[StoredObject]) -> list[Json]:
    """A fresh copy of each."""
    return await offload_by_size(sum(each.size for each in stored), _parse_all, stored)


def _parse_all(stored: Sequence[StoredObject]) -> list[Json]:
    return [each.parse() for each in stored]
