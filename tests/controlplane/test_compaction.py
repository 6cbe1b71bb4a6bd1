"""Compaction drops what was history one interval ago."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.apiserver.storage.errors import Compacted, Unavailable
from pilothouse.controlplane.compaction import compact_forever, compact_once


class Ledger:
    """Only the part of a store that compaction uses."""

    def __init__(self) -> None:
        self.revision = 0
        self.compacted: list[int] = []
        self.failure: Exception | None = None

    async def current_revision(self) -> int:
        return self.revision

    async def compact(self, revision: int) -> None:
        if self.failure:
            raise self.failure
        self.compacted.append(revision)


async def test_what_was_current_one_interval_ago_is_the_oldest_kept() -> None:
    store = Ledger()
    revisions = iter([10, 25, 30])

    async def sleep(seconds: float) -> None:
        assert seconds == 300
        try:
            store.revision = next(revisions)
        except StopIteration:
            raise asyncio.CancelledError from None

    with pytest.raises(asyncio.CancelledError):
        await compact_forever(store, 300, sleep=sleep)  # type: ignore[arg-type]
    assert store.compacted == [10, 25]


async def test_what_another_server_has_compacted_is_no_failure() -> None:
    store = Ledger()
    store.revision, store.failure = 25, Compacted(10, 12)
    assert await compact_once(store, 10) == 25  # type: ignore[arg-type]


async def test_a_compaction_that_failed_is_tried_again() -> None:
    store = Ledger()
    store.revision, store.failure = 25, Unavailable("gone")
    assert await compact_once(store, 10) == 10  # type: ignore[arg-type]
