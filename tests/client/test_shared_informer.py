"""The shared informer's promises, on a real HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from api_server_fixture import ApiServer
from patience import PATIENCE

from pilothouse.client.cache.handlers import (
    FilteringResourceEventHandler,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
)
from pilothouse.client.cache.indexer import CacheMutated
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.cache.keys import DeletedFinalStateUnknown, last_known_state
from pilothouse.client.cache.shared_informer import InformerState, SharedIndexInformer, wait_for_cache_sync
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.client import Client
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")


class History:
    """A handler that writes down what it was told, and can be waited for."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.objects: list[Any] = []
        self._changed = asyncio.Event()

    def on_add(self, obj: Json, is_in_initial_list: bool) -> None:
        self._write("add", name_of(obj), is_in_initial_list, obj=obj)

    def on_update(self, old: Json, new: Json) -> None:
        self._write("update", name_of(new), obj=new)

    def on_delete(self, obj: Json | DeletedFinalStateUnknown) -> None:
        state = last_known_state(obj)
        assert state is not None
        self._write("delete", name_of(state), isinstance(obj, DeletedFinalStateUnknown), obj=obj)

    def _write(self, *told: Any, obj: Any) -> None:
        self.told.append(told)
        self.objects.append(obj)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def length(self, count: int) -> None:
        await self.until(lambda: len(self.told) >= count)


def new_informer(client: Client, **options: Any) -> SharedIndexInformer:
    options.setdefault("clock", FakeClock())
    informer = SharedIndexInformer(client.resource("v1", "configmaps"), name="configmaps", **options)
    informer.detect_mutations()
    return informer


@asynccontextmanager
async def running(informer: SharedIndexInformer) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(informer.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_handler_is_told_of_every_change_of_an_object_in_order(server: ApiServer, client: Client) -> None:
    await server.put("a")
    informer, history = new_informer(client), History()
    informer.add_event_handler(history)
    async with running(informer):
        await history.length(1)
        await server.put("a", data={"x": "1"})
        await server.put("b")
        await server.remove("a")
        await history.length(4)
    of_a = [told for told in history.told if told[1] == "a"]
    assert of_a == [("add", "a", True), ("update", "a"), ("delete", "a", False)]
    gone = history.objects[history.told.index(of_a[-1])]
    assert gone["metadata"]["resourceVersion"] == str(server.version)


async def test_the_cache_shows_a_change_before_handlers_are_told(server: ApiServer, client: Client) -> None:
    informer = new_informer(client, indexers={"data": lambda obj: obj.get("data", {})})
    seen: list[tuple[bool, list[str]]] = []
    done = asyncio.Event()

    def look(obj: Json) -> None:
        seen.append((informer.indexer.get_by_key("default/a") is not None, informer.indexer.index_keys("data", "x")))
        done.set()

    informer.add_event_handler(ResourceEventHandlerFuncs(add=look))
    async with running(informer):
        await informer.wait_synced()
        await server.put("a", data={"x": "1"})
        await done.wait()
    assert seen == [(True, ["default/a"])]


async def test_a_late_handler_is_told_of_what_there_is_and_then_of_every_change(
    server: ApiServer, client: Client
) -> None:
    await server.put("a")
    await server.put("b")
    informer, late = new_informer(client), History()
    async with running(informer):
        await informer.wait_synced()
        registration = informer.add_event_handler(late)
        assert not registration.has_synced()
        assert registration.pending == 2
        await registration.wait_synced()
        assert late.told == [("add", "a", True), ("add", "b", True)]
        await server.put("c")
        await late.length(3)
    assert late.told[2] == ("add", "c", False)


async def test_a_slow_handler_delays_nobody_and_loses_nothing(server: ApiServer, client: Client) -> None:
    informer, quick = new_informer(client), History()
    gate = asyncio.Event()
    slow_history = History()

    async def slow(obj: Json) -> None:
        await gate.wait()
        slow_history.on_add(obj, False)

    informer.add_event_handler(quick)
    registration = informer.add_event_handler(ResourceEventHandlerFuncs(add=slow))
    async with running(informer):
        for name in "abcde":
            await server.put(name)
        await quick.length(5)
        assert slow_history.told == []
        assert registration.pending == 4
        gate.set()
        await slow_history.length(5)
    assert [told[1] for told in slow_history.told] == [told[1] for told in quick.told]


async def test_a_handler_has_synced_only_when_it_has_handled_the_first_list(server: ApiServer, client: Client) -> None:
    await server.put("a")
    informer = new_informer(client)
    gate = asyncio.Event()

    async def wait(obj: Json) -> None:
        await gate.wait()

    registration = informer.add_event_handler(ResourceEventHandlerFuncs(add=wait))
    async with running(informer):
        await informer.wait_synced()
        assert informer.has_synced()
        assert not registration.has_synced()
        gate.set()
        await wait_for_cache_sync(informer, registration)
        assert registration.has_synced()


async def test_a_handler_that_raises_loses_that_one_notification(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    informer, history = new_informer(client, clock=clock), History()

    def broken(obj: Json) -> None:
        if name_of(obj) == "a":
            raise RuntimeError("no")
        history.on_add(obj, False)

    registration = informer.add_event_handler(ResourceEventHandlerFuncs(add=broken))
    await server.put("a")
    async with running(informer):
        await clock.wait_for_timers(2)  # one is the mutation detector's
        clock.advance(1)
        await registration.wait_synced()
        await server.put("b")
        await history.length(1)
    assert history.told == [("add", "b", False)]
    assert "no" in caplog.text


async def test_a_removed_handler_is_told_nothing_more(server: ApiServer, client: Client) -> None:
    informer, stays, goes = new_informer(client), History(), History()
    informer.add_event_handler(stays)
    registration = informer.add_event_handler(goes)
    async with running(informer):
        await server.put("a")
        await goes.length(1)
        informer.remove_event_handler(registration)
        informer.remove_event_handler(registration)
        await server.put("b")
        await stays.length(2)
    assert len(goes.told) == 1


async def test_what_was_deleted_unseen_is_told_as_a_tombstone(server: ApiServer, client: Client) -> None:
    clock = FakeClock()
    await server.put("a")
    await server.put("b")
    informer, history = new_informer(client, clock=clock), History()
    informer.add_event_handler(history)
    async with running(informer):
        await history.length(2)
        await server.wait_for_watches()
        server.cut()
        await server.remove("a")
        server.compact()
        await clock.wait_for_timers(2)
        clock.advance(60)
        await history.until(lambda: ("delete", "a", True) in history.told)
    assert history.objects[-1].key == "default/a"
    assert informer.indexer.list_keys() == ["default/b"]


async def test_each_handler_is_resynced_in_its_own_period(server: ApiServer, client: Client) -> None:
    clock = FakeClock()
    await server.put("a")
    informer = new_informer(client, clock=clock, resync_period=20.0)
    fast, slow, never = History(), History(), History()
    informer.add_event_handler(fast, resync_period=10.0)
    informer.add_event_handler(slow)
    informer.add_event_handler(never, resync_period=0.0)
    async with running(informer):
        for history in (fast, slow, never):
            await history.length(1)
        await server.wait_for_watches()
        for expected in (2, 3, 4):
            await clock.wait_for_timers(2)
            clock.advance(10)
            await fast.length(expected)
        await slow.length(2)
    assert fast.told == [("add", "a", True)] + [("update", "a")] * 3
    assert slow.told == [("add", "a", True), ("update", "a")]
    assert never.told == [("add", "a", True)]


async def test_an_informer_without_resyncs_does_none_for_anybody(server: ApiServer, client: Client) -> None:
    clock = FakeClock()
    await server.put("a")
    informer, history = new_informer(client, clock=clock), History()
    informer.add_event_handler(history, resync_period=5.0)
    async with running(informer):
        await history.length(1)
        clock.advance(100)
        await server.put("b")
        await history.length(2)
    assert history.told == [("add", "a", True), ("add", "b", False)]


async def test_objects_are_transformed_before_anyone_sees_them(server: ApiServer, client: Client) -> None:
    await server.put("a", data={"big": "x" * 100})
    informer, history = new_informer(client), History()
    informer.add_event_handler(history)
    informer.set_transform(lambda obj: {"metadata": obj["metadata"]})
    async with running(informer):
        await history.length(1)
    assert "data" not in history.objects[0]
    assert "data" not in informer.indexer.list()[0]


async def test_the_watch_error_handler_hears_of_failures(server: ApiServer, client: Client) -> None:
    heard: asyncio.Queue[tuple[str, Exception]] = asyncio.Queue()
    for _ in range(2):
        server.faults.fail(500)
    informer = new_informer(client)
    informer.set_watch_error_handler(lambda name, error: heard.put_nowait((name, error)))
    async with running(informer):
        name, error = await heard.get()
    assert name == "configmaps"
    assert "injected 500" in str(error)


async def test_a_watch_error_handler_that_fails_does_not_stop_the_informer(server: ApiServer, client: Client) -> None:
    clock = FakeClock()
    for _ in range(2):
        server.faults.fail(500)
    informer = new_informer(client, clock=clock)

    def broken(name: str, error: Exception) -> None:
        raise RuntimeError(name)

    informer.set_watch_error_handler(broken)
    async with running(informer):
        await clock.wait_for_timers(2)
        clock.advance(5)
        async with asyncio.timeout(PATIENCE):
            await informer.wait_synced()


async def test_what_must_be_set_before_the_start_is_refused_after_it(server: ApiServer, client: Client) -> None:
    informer = new_informer(client)
    async with running(informer):
        await informer.wait_synced()
        late_settings: tuple[Callable[[], None], ...] = (
            lambda: informer.set_transform(dict),
            lambda: informer.set_watch_error_handler(lambda name, error: None),
            informer.detect_mutations,
        )
        for late in late_settings:
            with pytest.raises(InformerState, match="already started"):
                late()
    assert informer.is_stopped
    with pytest.raises(InformerState, match="stopped"):
        informer.add_event_handler(History())
    with pytest.raises(InformerState, match="stopped"):
        informer.add_indexers({})


async def test_changing_an_object_of_the_cache_makes_the_informer_fail(server: ApiServer, client: Client) -> None:
    clock = FakeClock()
    await server.put("a")
    informer = new_informer(client, clock=clock)
    informer.add_event_handler(ResourceEventHandlerFuncs(add=lambda obj: obj.update(data={"mine": "now"})))
    async with running(informer) as task:
        await informer.wait_synced()
        await clock.wait_for_timers()
        while not task.done():
            clock.advance(1)
            await asyncio.sleep(0)
        with pytest.raises(ExceptionGroup) as caught:
            task.result()
    assert caught.value.subgroup(CacheMutated) is not None


def test_mutation_detection_can_be_switched_on_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from pilothouse.client.cache.indexer import detector_from_environment

    monkeypatch.delenv("KUBE_CACHE_MUTATION_DETECTOR", raising=False)
    assert detector_from_environment("x", FakeClock()) is None
    monkeypatch.setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
    detector = detector_from_environment("x", FakeClock())
    assert detector is not None
    obj = {"a": [1]}
    detector.add_object(obj)
    detector.compare_objects()
    obj["a"].append(2)
    with pytest.raises(CacheMutated, match="cache x modified"):
        detector.compare_objects()


async def test_a_filter_turns_updates_into_additions_and_deletions() -> None:
    history = History()
    handler: ResourceEventHandler = FilteringResourceEventHandler(lambda obj: bool(obj.get("mine")), history)

    def obj(mine: bool) -> Json:
        return {"metadata": {"name": "a"}, "mine": mine}

    handler.on_add(obj(False), True)
    handler.on_update(obj(False), obj(True))
    handler.on_update(obj(True), obj(True))
    handler.on_update(obj(True), obj(False))
    handler.on_update(obj(False), obj(False))
    handler.on_delete(obj(False))
    handler.on_delete(DeletedFinalStateUnknown("a", obj(True)))
    assert history.told == [("add", "a", False), ("update", "a"), ("delete", "a", False), ("delete", "a", True)]


async def test_a_factory_shares_one_informer_and_lists_from_its_cache(server: ApiServer, client: Client) -> None:
    await server.put("a", metadata={"labels": {"app": "x"}})
    await server.put("b", "other")
    factory = SharedInformerFactory(client, namespace="default")
    informer = factory.for_resource(CONFIG_MAPS)
    assert factory.for_resource(CONFIG_MAPS) is informer
    async with factory:
        await factory.wait_for_cache_sync()
        lister = factory.lister(CONFIG_MAPS)
        assert [name_of(obj) for obj in lister.list()] == ["a"]
        assert lister.namespace("default").get("a")["metadata"]["labels"] == {"app": "x"}
        factory.start()
    assert server.count("GET") == 1
    assert informer.is_stopped


async def test_a_factory_hands_its_selectors_and_transform_to_every_informer(server: ApiServer, client: Client) -> None:
    await server.put("a", data={"x": "1"})
    factory = SharedInformerFactory(
        client, label_selector="app=x", field_selector="metadata.name=a", transform=lambda obj: {**obj, "data": None}
    )
    factory.for_resource(CONFIG_MAPS)
    async with factory:
        await factory.wait_for_cache_sync()
        assert factory.lister(CONFIG_MAPS).list()[0]["data"] is None
    assert server.requests[0][2]["labelSelector"] == "app=x"
    assert server.requests[0][2]["fieldSelector"] == "metadata.name=a"
