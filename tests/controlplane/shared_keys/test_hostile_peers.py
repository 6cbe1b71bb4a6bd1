"""A peer that can write to the store, but has no token: nothing that it puts there changes the keys of servers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from patience import PATIENCE

from pilothouse.apiserver.storage.interface import Entry
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.shared_keys.directory import SharedKeys, read_keys
from pilothouse.controlplane.shared_keys.record import JoinRefused, JoinToken
from pilothouse.controlplane.shared_keys.rotation import KINDS, issue, retire, trust
from pilothouse.controlplane.shared_keys.source import follow, settle
from pilothouse.controlplane.shared_keys.stored import StoredKeys, kept_token

KEY = "/registry/pilothouse.dev/sharedkeys/cluster"
CA = KINDS["ca"]


class Cluster:
    """Servers on one store that somebody else can write to."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store, self.folder = store, folder

    def server(self, name: str, token: str = "") -> StoredKeys:
        (self.folder / name).mkdir(exist_ok=True)
        return StoredKeys(self.store, "/registry", self.folder / name, token)

    async def start(self, name: str, token: str = "") -> SharedKeys:
        await settle(self.server(name, token), self.folder / name)
        return read_keys(self.folder / name / "pki")

    async def rotate(self) -> None:
        """Through the first server, to the end."""
        for step in (trust, issue, retire):
            await self.server("first").change(lambda keys, step=step: step(keys, CA))  # type: ignore[misc]

    async def record(self) -> Entry:
        entry = await self.store.get(KEY)
        assert entry is not None
        return entry

    async def put(self, value: bytes) -> None:
        await self.store.update(KEY, value, expected=(await self.record()).modified)

    @property
    def token(self) -> str:
        kept = kept_token(self.folder / "first")
        assert kept is not None
        return kept.text


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    store = await SqliteStore.open(tmp_path / "store", fsync=False)
    yield Cluster(store, tmp_path)
    await store.close()


async def test_a_record_from_before_a_rotation_is_replaced_by_the_newest(cluster: Cluster) -> None:
    """Otherwise a stolen key could be retired, and be trusted again by putting the old record back."""
    old_keys = await cluster.start("first")
    await cluster.start("second", cluster.token)
    old = (await cluster.record()).value
    await cluster.rotate()
    new_keys = await cluster.start("first")
    assert await cluster.start("second") == new_keys != old_keys
    for name in ("second", "first"):
        await cluster.put(old)
        assert await cluster.start(name) == new_keys
    assert await cluster.start("third", cluster.token) == new_keys, "who joins later gets the newest, too"


async def test_a_server_that_runs_follows_no_older_record(cluster: Cluster) -> None:
    await cluster.start("first")
    old = (await cluster.record()).value
    await cluster.rotate()
    new_keys = await cluster.start("first")
    source, used = cluster.server("first"), asyncio.Event()

    async def use() -> None:
        used.set()

    await source.current()
    following = asyncio.create_task(follow(source, cluster.folder / "first", use, at_least_every=PATIENCE))
    await cluster.put(old)
    await asyncio.wait_for(used.wait(), PATIENCE)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    assert read_keys(cluster.folder / "first/pki") == new_keys
    assert (await cluster.record()).value != old


async def test_an_older_token_is_not_good_again_by_its_record(cluster: Cluster) -> None:
    await cluster.start("first")
    old_token, old = cluster.token, (await cluster.record()).value
    await cluster.server("first").change_token(JoinToken.new())
    await cluster.put(old)
    await cluster.start("first")
    with pytest.raises(JoinRefused):
        await cluster.start("eve", old_token)


async def test_a_server_that_has_lost_its_newest_keys_says_what_to_do_with_an_old_record(cluster: Cluster) -> None:
    await cluster.start("first")
    old = (await cluster.record()).value
    await cluster.rotate()
    await cluster.start("first")
    (cluster.folder / "first/pki/ca.crt").unlink()
    await cluster.put(old)
    with pytest.raises(JoinRefused, match="an older record"):
        await cluster.start("first")
    (cluster.folder / "first/cluster-newest.json").unlink()
    assert "ca.crt" in await cluster.start("first")


async def test_a_record_that_is_deleted_is_there_again(cluster: Cluster) -> None:
    await cluster.start("first")
    await cluster.rotate()
    keys = await cluster.start("first")
    await cluster.store.delete(KEY, expected=(await cluster.record()).modified)
    assert await cluster.start("first") == keys
    assert await cluster.start("second", cluster.token) == keys


FORGED: tuple[Any, ...] = (
    {"token": {"id": 5, "sealed": 5}, "sealed": 5},
    {"token": {"id": "abcdef", "sealed": None}, "sealed": ["a"]},
    {"token": {"id": "abcdef", "sealed": "AAAA"}, "sealed": "AAAA"},
    {"token": {"id": "\x1b[2Jabc", "sealed": ""}, "sealed": "é"},
    {"token": {"id": "a" * 1_000_000, "sealed": "A" * 100_000}, "sealed": "A" * 100_000},
    {"token": ["id", "sealed"], "sealed": ""},
    [[]],
    None,
)


@pytest.mark.parametrize("forged", FORGED, ids=range(len(FORGED)))
async def test_a_forged_record_is_refused_without_repeating_it(
    cluster: Cluster, forged: Any, caplog: pytest.LogCaptureFixture
) -> None:
    keys = await cluster.start("first")
    await cluster.put(json.dumps(forged).encode())
    refusals = []
    for name, token in (("first", ""), ("second", cluster.token)):
        with pytest.raises(JoinRefused) as refusal:
            await cluster.start(name, token)
        refusals.append(str(refusal.value))
    assert all(len(text) < 500 and text.isprintable() for text in refusals)
    assert read_keys(cluster.folder / "first/pki") == keys
    assert not (cluster.folder / "second/pki").exists()

    caplog.set_level(logging.ERROR)
    following = asyncio.create_task(
        follow(cluster.server("first"), cluster.folder / "first", _nothing, at_least_every=0.01)
    )
    async with asyncio.timeout(PATIENCE):
        while "can not be followed at the moment" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not following.done(), "a server that follows goes on"
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


async def _nothing() -> None:
    pass
