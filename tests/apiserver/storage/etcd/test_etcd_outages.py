"""An etcd that dies, hangs or comes back empty: no wrong answer, no lost event, and no longer than it takes."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from itertools import count
from pathlib import Path

import pytest
from etcd_backend import connect
from etcd_process import EtcdProcess
from patience import PATIENCE
from store_reading import events_until, next_batch, next_events

from pilothouse.apiserver.storage.errors import KeyNotFound, StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.store import EtcdStore


async def _until_it_answers(store: EtcdStore) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await store.ping()
                return
            except Unavailable:
                await asyncio.sleep(0.02)


async def test_a_watch_goes_on_across_a_restart_of_etcd_without_loss_or_repetition(etcd: EtcdProcess) -> None:
    store, other = await connect(etcd.url), await connect(etcd.url)
    watch = store.watch("/registry/", after=await store.current_revision())
    before = [await other.create(f"/registry/before/{i}", b"") for i in range(3)]
    events = await next_events(watch, 1)
    etcd.stop()
    etcd.start()
    await _until_it_answers(other)
    after = [await other.create(f"/registry/after/{i}", b"") for i in range(3)]
    events += await next_events(watch, 6 - len(events))
    assert [event.entry for event in events] == before + after
    await store.close()
    await other.close()


async def test_a_vanished_etcd_is_unavailable_at_once_and_heals_when_it_is_back(etcd: EtcdProcess) -> None:
    store = await connect(etcd.url)
    entry = await store.create("/registry/a", b"")
    etcd.stop()
    started = time.monotonic()
    for _ in range(10):
        for refused in (store.get("/registry/a"), store.current_revision(), store.ping(), store.count("/")):
            with pytest.raises(Unavailable):
                await refused
    assert time.monotonic() - started < 30
    etcd.start()
    await _until_it_answers(store)
    assert await store.get("/registry/a") == entry
    await store.close()


async def test_a_write_that_could_not_even_be_sent_certainly_did_not_happen(etcd: EtcdProcess) -> None:
    store = await connect(etcd.url)
    etcd.kill()
    with pytest.raises(Unavailable):
        await store.current_revision()
    with pytest.raises(Unavailable) as failure:
        await store.create("/registry/a", b"")
    assert not failure.value.uncertain
    await store.close()


async def test_a_write_that_etcd_does_not_answer_is_uncertain(etcd: EtcdProcess) -> None:
    store = await EtcdStore.connect([etcd.url], compaction_interval=0, request_timeout=0.3)
    etcd.send(signal.SIGSTOP)
    with pytest.raises(Unavailable) as failure:
        await store.create("/registry/a", b"")
    assert failure.value.uncertain
    with pytest.raises(Unavailable):
        await store.get("/registry/a")
    etcd.send(signal.SIGCONT)
    await _until_it_answers(store)
    await store.close()


async def test_closing_the_store_does_not_wait_for_an_etcd_that_is_gone(etcd: EtcdProcess) -> None:
    store = await connect(etcd.url)
    watch = store.watch("/registry/", after=await store.current_revision())
    etcd.send(signal.SIGSTOP)
    hanging = asyncio.ensure_future(store.create("/registry/a", b""))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await store.close()
    with pytest.raises(Unavailable) as failure:
        await hanging
    assert failure.value.uncertain
    with pytest.raises(Unavailable):
        await next_batch(watch)


async def test_an_etcd_that_came_back_without_its_history_ends_the_watches(etcd: EtcdProcess) -> None:
    """Its revisions start anew, and no event would ever be newer than the last one that the watch saw."""
    store = await connect(etcd.url)
    watch = store.watch("/registry/", after=await store.current_revision())
    for i in range(5):
        await store.create(f"/registry/{i}", b"")
    await next_events(watch, 5)
    etcd.kill()
    shutil.rmtree(etcd.directory / etcd.name)
    etcd.start()
    with pytest.raises(StorageError, match="went back from revision 6 to 1"):
        await next_batch(watch)
    again = store.watch("/registry/", after=await store.current_revision())
    entry = await store.create("/registry/a", b"")
    assert [event.entry for event in await next_events(again, 1)] == [entry]
    await store.close()


async def test_a_store_waits_for_an_etcd_that_starts_later(etcd: EtcdProcess) -> None:
    etcd.kill()
    connecting = asyncio.ensure_future(connect(etcd.url))
    await asyncio.sleep(0)
    etcd.start()
    store = await connecting
    await store.ping()
    await store.close()


async def test_an_etcd_that_does_not_come_is_named(etcd: EtcdProcess) -> None:
    etcd.kill()
    with pytest.raises(Unavailable, match=etcd.url):
        await EtcdStore.connect([etcd.url], dial_timeout=0.2)


async def test_a_replay_goes_on_when_etcd_is_back(etcd: EtcdProcess) -> None:
    """A watch that has to read old events does not fail because etcd is away for a moment."""
    store = await connect(etcd.url)
    start = await store.current_revision()
    entries = [await store.create(f"/registry/{i}", b"") for i in range(3)]
    with pytest.raises(KeyNotFound):
        await store.delete("/registry/never", expected=1)
    etcd.stop()
    reading = asyncio.ensure_future(events_until(store, "/registry/", after=start, last=entries[-1].modified))
    await asyncio.sleep(0)
    etcd.start()
    assert [event.entry for event in await reading] == entries
    await store.close()


async def _fill(store: EtcdStore) -> None:
    for i in count():
        await store.create(f"/registry/{i}", b"x" * 20_000)


async def test_an_etcd_without_space_refuses_writes_for_certain_and_is_not_healthy(tmp_path: Path) -> None:
    etcd = EtcdProcess(tmp_path, options=["--quota-backend-bytes", "100000"])
    etcd.start()
    store = await connect(etcd.url)
    with pytest.raises(Unavailable, match="space exceeded") as failure:
        await _fill(store)
    assert not failure.value.uncertain
    with pytest.raises(Unavailable, match="NOSPACE"):
        await store.ping()
    assert await store.get("/registry/0") is not None
    await store.close()
    etcd.kill()
