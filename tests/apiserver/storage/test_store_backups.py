"""All of a store goes into a file, and out of it into an empty store of either kind."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from etcd_backend import connect, emptied_etcd

from pilothouse.apiserver.storage.backup.etcd import EtcdSource, EtcdTarget
from pilothouse.apiserver.storage.backup.file import BackupFile, NotABackup, write_backup
from pilothouse.apiserver.storage.backup.model import BackupError, NotEmpty, SavedEntry, SavedFile, Source
from pilothouse.apiserver.storage.backup.sqlite import SqliteSource, SqliteTarget
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.etcd.store import EtcdStore
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

VALUES = {"/registry/a/one": b'{"a":1}', "/registry/a/two": b"k8s\x00\xff", "/registry/b/three": "ü".encode()}
BUMP = 50


class Place:
    """A store of one kind, as a server and as a backup see it."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind, self.directory = kind, directory
        self.url = emptied_etcd() if kind == "etcd" else ""

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store: Store = await (connect(self.url) if self.url else SqliteStore.open(self.directory))
        yield store
        await store.close()

    @asynccontextmanager
    async def source(self) -> AsyncIterator[Source]:
        if not self.url:
            with SqliteSource.open(self.directory) as source:
                yield source
            return
        async with self.store() as store:
            assert isinstance(store, EtcdStore)
            yield await EtcdSource.open(store.client, "/registry")

    async def fill(self, source: Source, *, bump: int = BUMP) -> int:
        if not self.url:
            return await SqliteTarget(self.directory).fill(source, at_least=source.revision + bump)
        async with self.store() as store:
            assert isinstance(store, EtcdStore)
            return await (await EtcdTarget.open(store, "/registry")).fill(source, at_least=source.revision + bump)


@pytest.fixture(params=["sqlite", "etcd"], name="place")
def _place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path / "store")


async def filled(store: Store) -> None:
    for key, value in VALUES.items():
        await store.create(key, b"older")
        entry = await store.get(key)
        assert entry is not None
        await store.update(key, value, expected=entry.modified)
    await store.create("/registry/events/e", b"e", ttl=3000)
    gone = await store.create("/registry/a/gone", b"x")
    await store.delete("/registry/a/gone", expected=gone.modified)


async def backed_up(place: Place, file: Path) -> BackupFile:
    async with place.store() as store:
        await filled(store)
        async with place.source() as source:
            await store.create("/registry/a/later", b"not in it")
            await write_backup(file, source, [SavedFile("pki/ca.crt", 0o644, b"ca")], made="now")
        assert source.revision == await store.current_revision() - 1
    return BackupFile(file)


async def test_a_backup_has_every_key_of_its_revision_and_no_later_one(place: Place, tmp_path: Path) -> None:
    backup = await backed_up(place, tmp_path / "file")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    entries = {entry.key: entry async for entry in backup.entries()}
    assert {key: entry.value for key, entry in entries.items()} == {**VALUES, "/registry/events/e": b"e"}
    assert max(entry.modified for entry in entries.values()) < backup.revision
    assert 2900 < entries["/registry/events/e"].ttl <= 3200
    assert [each.content for each in backup.files()] == [b"ca"]


@pytest.mark.parametrize("kind", ["sqlite", "etcd"])
async def test_a_restored_store_of_either_kind_is_ahead_of_all_that_clients_know(
    place: Place, kind: str, tmp_path: Path
) -> None:
    backup = await backed_up(place, tmp_path / "file")
    target = Place(kind, tmp_path / "restored")
    revision = await target.fill(backup)
    async with target.store() as store:
        page = await store.list("/registry/")
        assert {entry.key: entry.value for entry in page.entries} == {**VALUES, "/registry/events/e": b"e"}
        assert min(entry.modified for entry in page.entries) > backup.revision + BUMP
        assert page.revision == revision
        with pytest.raises(Compacted):
            await anext(aiter(store.watch("/registry/", after=backup.revision + BUMP)))
        watch = store.watch("/registry/", after=revision)
        created = await store.create("/registry/a/next", b"")
        assert created.modified == revision + 1
        assert [event.key for event in (await anext(aiter(watch))).events] == ["/registry/a/next"]
        await watch.aclose()


async def test_a_store_that_is_not_empty_stays_as_it_is(place: Place, tmp_path: Path) -> None:
    backup = await backed_up(place, tmp_path / "file")
    with pytest.raises(NotEmpty, match="keys: only an empty store is restored into"):
        await place.fill(backup)
    async with place.store() as store:
        assert await store.get("/registry/a/later") is not None


class BreaksOff:
    """A source that fails behind its first entry."""

    revision, prefix = 7, "/registry"

    async def entries(self) -> AsyncIterator[SavedEntry]:
        yield SavedEntry("/registry/a/one", b"1", 5, 5)
        raise BackupError("somebody pulled the plug")

    async def newest(self) -> int:
        return 7


async def test_what_can_not_be_restored_wholly_is_not_restored_at_all(place: Place) -> None:
    with pytest.raises(BackupError, match="somebody pulled the plug"):
        await place.fill(BreaksOff(), bump=0)
    async with place.store() as store:
        assert await store.count("/registry/") == 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "Compressed file ended"),
        (lambda data: gzip.compress(gzip.decompress(data).replace(b'\\"a\\"', b'\\"b\\"')), "not what its checksum"),
        (lambda data: gzip.compress(gzip.decompress(data).rpartition(b'{"entries"')[0]), "it was cut off"),
        (lambda data: gzip.compress(gzip.decompress(data).replace(b'"version":1', b'"version":2')), "use a newer one"),
        (lambda data: b"", "zero-length"),
        (lambda data: gzip.compress(b"{}"), "does not say pilothouse.dev/backup"),
    ],
)
async def test_a_file_that_is_damaged_cut_off_or_newer_is_refused(
    damage: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    await backed_up(Place("sqlite", tmp_path / "store"), file := tmp_path / "file")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(NotABackup, match=message):
        BackupFile(file)


async def test_a_backup_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(b"older")
    with pytest.raises(BackupError):
        await write_backup(file, BreaksOff(), (), made="now")
    assert os.listdir(tmp_path) == ["file"]
    assert file.read_bytes() == b"older"


async def test_a_way_that_etcd_can_not_go_in_a_reasonable_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="etcdutl snapshot restore --bump-revision 1000000007"):
        await Place("etcd", tmp_path).fill(BreaksOff(), bump=1_000_000_000)
