"""Compaction forgets history and nothing else."""

from __future__ import annotations

import pytest
from storage_backends import Backend
from store_reading import events_until

from pilothouse.apiserver.storage.errors import Compacted, FutureRevision
from pilothouse.apiserver.storage.interface import Entry, Store


async def _rewrite(store: Store, key: str, times: int) -> list[Entry]:
    versions = [await store.create(key, b"0")]
    for i in range(1, times):
        versions.append(await store.update(key, b"%d" % i, expected=versions[-1].modified))
    return versions


async def test_the_state_at_the_compacted_revision_and_after_stays_readable(store: Store) -> None:
    versions = await _rewrite(store, "/registry/a", 6)
    await store.compact(versions[3].modified)
    for version in versions[3:]:
        assert (await store.list("/registry/", at=version.modified)).entries == [version]
    for version in versions[:3]:
        with pytest.raises(Compacted):
            await store.list("/registry/", at=version.modified)


async def test_a_key_deleted_before_the_compacted_revision_stays_deleted(backend: Backend) -> None:
    store = await backend.open()
    kept = await store.create("/registry/kept", b"")
    gone = await store.create("/registry/gone", b"")
    await store.delete("/registry/gone", expected=gone.modified)
    await store.compact(await store.current_revision())
    await store.close()
    store = await backend.open()
    assert (await store.list("/registry/")).entries == [kept]
    await store.close()


async def test_changes_after_the_compacted_revision_are_still_told_with_what_they_replaced(store: Store) -> None:
    versions = await _rewrite(store, "/registry/a", 5)
    await store.compact(versions[2].modified)
    events = await events_until(store, "/registry/", after=versions[2].modified, last=versions[-1].modified)
    assert [(event.previous, event.entry) for event in events] == [
        (versions[2], versions[3]),
        (versions[3], versions[4]),
    ]


async def test_compacting_to_a_revision_to_come_is_refused(store: Store) -> None:
    current = await store.current_revision()
    with pytest.raises(FutureRevision):
        await store.compact(current + 1)


async def test_compacting_again_or_further_back_does_nothing(store: Store) -> None:
    versions = await _rewrite(store, "/registry/a", 4)
    await store.compact(versions[2].modified)
    await store.compact(versions[2].modified)
    await store.compact(versions[0].modified)
    assert (await store.list("/registry/", at=versions[2].modified)).entries == [versions[2]]
    with pytest.raises(Compacted):
        await store.list("/registry/", at=versions[1].modified)


async def test_compaction_is_remembered_and_the_revision_goes_on(backend: Backend) -> None:
    """Even when nothing is left that could tell the revision."""
    store = await backend.open()
    entry = await store.create("/registry/a", b"")
    gone = await store.delete("/registry/a", expected=entry.modified)
    await store.compact(gone.modified)
    await store.close()
    store = await backend.open()
    assert await store.current_revision() >= gone.modified
    with pytest.raises(Compacted):
        await store.list("/registry/", at=entry.modified)
    assert (await store.create("/registry/a", b"")).created > gone.modified
    await store.close()
