"""Random histories, lags, losses and watches against a plain replay of the store's history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cacher_harness import CODEC, CONFIG_MAPS, PREFIX, ManualClock, key, labelled, put, settle
from cacher_memory_store import MemoryStore
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import WatchEvent, bookmark
from pilothouse.apiserver.storage.cacher.selection import CacheKeyRange
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.cacher.window import WindowLimits
from pilothouse.apiserver.storage.errors import Compacted, TooLargeRevision, TooOld
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.object import StoredObject

T = TypeVar("T")
Seen = tuple[str, str, Revision, bytes]

KEYS = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"]))
SCOPES = st.sampled_from([PREFIX, f"{PREFIX}x/", key("a", "x")])
PREDICATES = st.sampled_from([None, labelled("in", "yes")])


@dataclass
class Client:
    """A watcher, the world it was shown at its start, and what it has been told since."""

    watcher: CacheWatcher
    scope: str
    predicate: Callable[[StoredObject], bool] | None
    start: Revision
    told: list[Seen] = field(default_factory=list)

    def meant(self, entry: Entry | None) -> bool:
        if entry is None or entry.key not in CacheKeyRange.of(self.scope):
            return False
        return self.predicate is None or self.predicate(StoredObject(entry, CODEC))


def seen(event: WatchEvent) -> Seen:
    return event.type, event.object.key, event.revision, event.object.wire


def wire(entry: Entry, revision: Revision) -> bytes:
    return StoredObject(Entry(entry.key, entry.value, entry.created, revision), CODEC).wire


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = MemoryStore()
        self.clock = ManualClock()
        self.clients: list[Client] = []
        self.cacher = Cacher(
            self.store,
            PREFIX,
            CODEC,
            resource=CONFIG_MAPS,
            clock=self.clock,
            window=WindowLimits(least=4, most=8),
            watch_buffer=12,
        )
        self.run(self.cacher.start())
        self.run(self.cacher.wait_ready())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def patiently(self, work: Coroutine[Any, Any, T], seconds: float = 0.4) -> T:
        """Lets as much time pass as the work may need when the store keeps silent."""
        task = asyncio.ensure_future(work)
        await self.clock.advance(seconds)
        return await task

    @rule(changes=st.lists(st.tuples(KEYS, st.sampled_from(["yes", "no", None])), min_size=1, max_size=8))
    def change(self, changes: list[tuple[tuple[str, str], str | None]]) -> None:
        """None deletes. Each change may or may not be seen by the cache before the next."""
        for (name, namespace), chosen in changes:
            if chosen is not None:
                self.run(put(self.store, name, namespace, **{"in": chosen}))
            elif key(name, namespace) in self.store.entries:
                self.store.expire(key(name, namespace))

    @precondition(lambda self: len(self.store.entries) > 1)
    @rule(data=st.data())
    def expire_together(self, data: st.DataObject) -> None:
        ours = sorted(self.state(self.store.revision))
        self.store.expire(*data.draw(st.lists(st.sampled_from(ours), max_size=3, unique=True)) if ours else ())

    @rule(trouble=st.sampled_from(["elsewhere", "lag", "lag", "release", "release", "silence", "loss", "compaction"]))
    def trouble(self, trouble: str) -> None:
        if trouble == "elsewhere":
            self.run(self.store.create(f"/registry/secrets/{self.store.revision}", b"{}"))
        elif trouble == "lag":
            self.store.hold()
        elif trouble == "release":
            self.store.release()
        elif trouble == "silence":
            self.store.answers_progress = not self.store.answers_progress
        else:
            self.lose_the_watch(compact=trouble == "compaction")

    def lose_the_watch(self, compact: bool) -> None:
        if compact:
            self.run(self.store.compact(self.store.revision))
        self.store.break_watches()
        self.run(settle())
        assert all(client.watcher.closed for client in self.clients)
        self.run(self.clock.advance(6))
        assert self.cacher.ready

    @rule(scope=SCOPES, predicate=PREDICATES, initial=st.sampled_from([None, True]), any_revision=st.booleans())
    def watch_the_state(self, scope: str, predicate: Any, initial: bool | None, any_revision: bool) -> None:
        options: dict[str, Any] = {"predicate": predicate, "send_initial_events": initial, "bookmarks": True}
        newest = self.store.revision
        watching = self.cacher.watch(scope, after=0 if any_revision else None, **options)
        watcher = self.run(self.patiently(watching))
        start = watcher._start
        assert any_revision or start >= newest
        client = Client(watcher, scope, predicate, start)
        world = [entry for _, entry in sorted(self.state(start).items()) if client.meant(entry)]
        expected = [("ADDED", wire(entry, entry.modified)) for entry in world]
        if initial:
            expected.append(("BOOKMARK", bookmark(CODEC, start, ends_initial_events=True).object.wire))
        self.take(client, len(expected))
        assert [(kind, content) for kind, _, _, content in client.told] == expected
        client.told.clear()
        self.clients.append(client)

    @rule(scope=SCOPES, predicate=PREDICATES, back=st.integers(-1, 9))
    def watch_from(self, scope: str, predicate: Any, back: int) -> None:
        after = max(1, self.store.revision - back)
        try:
            watcher = self.run(
                self.patiently(self.cacher.watch(scope, after=after, predicate=predicate, bookmarks=True))
            )
        except TooOld:
            assert after < self.cacher._window.floor
            return
        self.clients.append(Client(watcher, scope, predicate, after))

    @rule(counts=st.lists(st.integers(0, 8), min_size=1, max_size=4))
    def read(self, counts: list[int]) -> None:
        self.run(settle())
        for client, count in zip(reversed(self.clients), counts, strict=False):
            self.take(client, count)

    @rule()
    def pass_a_minute(self) -> None:
        self.run(self.clock.advance(61.2))

    @rule(where=KEYS, scope=SCOPES, limit=st.integers(0, 3), back=st.integers(-1, 9))
    def look(self, where: tuple[str, str], scope: str, limit: int, back: int) -> None:
        self.get(*where)
        self.list_newest(scope, limit)
        self.list_the_past(scope, back)

    def get(self, name: str, namespace: str) -> None:
        found = self.run(self.patiently(self.cacher.get(key(name, namespace))))
        expected = self.store.entries.get(key(name, namespace))
        assert (found and found.revision) == (expected and expected.modified)

    def list_newest(self, scope: str, limit: int) -> None:
        page = self.run(self.patiently(self.cacher.list(scope, limit=limit)))
        expected = [e for k, e in sorted(self.store.entries.items()) if k in CacheKeyRange.of(scope)]
        shown = expected[:limit] if limit else expected
        assert [obj.revision for obj in page.objects] == [entry.modified for entry in shown]
        assert page.remaining == len(expected) - len(shown)

    def list_the_past(self, scope: str, back: int) -> None:
        at = max(1, self.store.revision - back)
        try:
            page = self.run(self.patiently(self.cacher.list(scope, at=at), 3.1))
        except Compacted:
            assert at < self.store.compacted
        except TooLargeRevision:
            assert at > self.cacher.revision
        else:
            expected = [e for k, e in sorted(self.state(at).items()) if k in CacheKeyRange.of(scope)]
            assert [obj.wire for obj in page.objects] == [wire(entry, entry.modified) for entry in expected]
            assert page.revision == at

    @invariant()
    def every_client_was_told_the_truth(self) -> None:
        for client in self.clients:
            changes = [told for told in client.told if told[0] != "BOOKMARK"]
            assert changes == self.transitions(client)[: len(changes)]
            self.check_bookmarks(client)

    def teardown(self) -> None:
        self.store.release()
        self.run(settle())
        for client in self.clients:
            whole = not client.watcher.closed
            self.take(client, 1000)
            if whole:
                changes = [told for told in client.told if told[0] != "BOOKMARK"]
                assert changes == self.transitions(client)
        self.every_client_was_told_the_truth()
        self.run(self.cacher.stop())
        self.loop.close()

    def take(self, client: Client, count: int) -> None:
        """Reads up to that many events, one by one, so that the rest stays in the watcher."""

        async def read() -> None:
            for _ in range(count):
                reading = asyncio.ensure_future(anext(client.watcher))
                await asyncio.sleep(0)
                if not reading.done():
                    reading.cancel()
                    await asyncio.wait([reading])
                if reading.cancelled() or reading.exception() is not None:
                    return
                client.told.append(seen(reading.result()))

        self.run(read())

    def state(self, revision: Revision) -> dict[str, Entry]:
        state: dict[str, Entry] = {}
        for event in self.store.history:
            if event.revision <= revision:
                state.pop(event.key, None)
                if event.entry is not None:
                    state[event.key] = event.entry
        return {k: entry for k, entry in state.items() if k.startswith(PREFIX)}

    def transitions(self, client: Client) -> list[Seen]:
        out: list[Seen] = []
        for event in self.store.history:
            now, before = client.meant(event.entry), client.meant(event.previous)
            if event.revision <= client.start or not (now or before):
                continue
            kind = ("MODIFIED" if before else "ADDED") if now else "DELETED"
            shown = event.entry if now else event.previous
            assert shown is not None
            out.append((kind, event.key, event.revision, wire(shown, event.revision)))
        return out

    def check_bookmarks(self, client: Client) -> None:
        """Whoever is told that it is past a revision has been told everything up to it, and nothing after it."""
        expected = self.transitions(client)
        told = 0
        for kind, _, revision, _ in client.told:
            if kind == "BOOKMARK":
                assert told == sum(change[2] <= revision for change in expected)
            else:
                told += 1


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
