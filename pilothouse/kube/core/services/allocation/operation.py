"""What the allocators of addresses and of ports share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

A = TypeVar("A")
T = TypeVar("T")


class AllocationOperation(ABC, Generic[A, T]):
    """The allocations of one write: made immediately, released by `revert`. `commit` releases what the service gave
    up."""

    def __init__(self, allocator: A, *, dry_run: bool) -> None:
        self._allocator = allocator
        self._dry_run = dry_run
        self._taken: list[T] = []
        self._given_up: list[T] = []

    async def commit(self) -> None:
        await self._release(self._given_up)

    async def revert(self) -> None:
        await self._release(self._taken)

    @abstractmethod
    async def _release(self, allocated: list[T]) -> None:
        """Release, except in a dry run."""


def lower_band(size: int, *, least: int, most: int, step: int) -> int:
    """Return the length of the lower part of a range, which dynamic allocation avoids; 0 for a small range."""
    return 0 if size <= least else min(max(size // step, least), most)
