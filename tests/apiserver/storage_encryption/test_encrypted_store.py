"""A store whose values are encrypted: its users see nothing of it, and those without the key see nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.storage.encryption.local import AesGcm, Identity
from pilothouse.apiserver.storage.encryption.store import EncryptedStore
from pilothouse.apiserver.storage.encryption.transformer import Prefixed, PrefixTransformers
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.server_errors import InternalError

A, B = "/registry/secrets/a", "/registry/secrets/b"


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Store]:
    store = await SqliteStore.open(tmp_path)
    yield store
    await store.close()


def encrypted(bare: Store, secret: bytes = bytes(32)) -> EncryptedStore:
    chain = [Prefixed(b"k8s:enc:aesgcm:v1:k:", AesGcm(secret)), Prefixed(b"", Identity())]
    return EncryptedStore(bare, PrefixTransformers(chain))


def value_of(entry: Entry | None) -> bytes | None:
    return None if entry is None else entry.value


async def test_every_way_to_read_shows_what_was_written(bare: Store) -> None:
    store = encrypted(bare)
    watch = store.watch("/registry/", after=await store.current_revision())
    created = await store.create(A, b"one")
    updated = await store.update(A, b"two", expected=created.modified)
    assert (created.value, updated.value) == (b"one", b"two")
    found = await store.get(A)
    assert found is not None
    assert (found.value, found.stale) == (b"two", False)
    assert [entry.value for entry in (await store.list("/registry/")).entries] == [b"two"]
    assert (await store.delete(A, expected=updated.modified)).value == b"two"
    seen: list[tuple[bytes | None, bytes | None]] = []
    async for batch in watch:
        seen += [(value_of(event.entry), value_of(event.previous)) for event in batch.events]
        if len(seen) == 3:
            break
    await watch.aclose()
    assert seen == [(b"one", None), (b"two", b"one"), (None, b"two")]


async def test_the_bare_store_has_nothing_readable(bare: Store) -> None:
    await encrypted(bare).create(A, b"a long enough value")
    found = await bare.get(A)
    assert found is not None
    assert found.value.startswith(b"k8s:enc:aesgcm:v1:k:")
    assert b"long enough" not in found.value


async def test_what_was_written_before_is_read_and_stale(bare: Store) -> None:
    await bare.create(A, b"{}")
    found = await encrypted(bare).get(A)
    assert found is not None
    assert (found.value, found.stale) == (b"{}", True)


async def test_with_the_wrong_key_reads_fail_and_name_what_can_not_be_read(bare: Store) -> None:
    await encrypted(bare).create(A, b"{}")
    other = encrypted(bare, secret=bytes([1]) * 32)
    with pytest.raises(TransformFailed, match=f'unable to transform key "{A}": '):
        await other.get(A)
    with pytest.raises(TransformFailed):
        await other.list("/registry/")
    with (
        pytest.raises(InternalError, match="Internal error occurred: unable to transform key"),
        map_storage_errors(GroupResource("", "secrets"), "a"),
    ):
        await other.get(A)


async def test_a_value_copied_to_another_key_is_not_read_there(bare: Store) -> None:
    store = encrypted(bare)
    await store.create(A, b"{}")
    copied = await bare.get(A)
    assert copied is not None
    await bare.create(B, copied.value)
    with pytest.raises(TransformFailed):
        await store.get(B)
