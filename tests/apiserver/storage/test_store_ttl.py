"""Keys with a time to live."""

from __future__ import annotations

from storage_backends import Backend
from store_reading import next_events

from pilothouse.apiserver.storage.interface import Event, Store


async def test_a_key_is_deleted_like_any_other_when_its_time_is_over(backend: Backend, store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    entry = await store.create("/registry/a", b"", ttl=2)
    lasting = await store.create("/registry/b", b"")
    await backend.let_expire(2)
    events = await next_events(watch, 3)
    assert events[-1] == Event(lasting.modified + 1, "/registry/a", None, entry)
    assert await store.get("/registry/a") is None
    assert await store.get("/registry/b") == lasting
    await watch.aclose()


async def test_an_update_gives_the_key_its_own_time_to_live(backend: Backend, store: Store) -> None:
    """Each of three keys would go at the same time, were it not updated."""
    watch = store.watch("/registry/", after=await store.current_revision())
    keys = ("/registry/forever", "/registry/longer", "/registry/as-it-was")
    forever, longer, _ = [await store.create(key, b"", ttl=2) for key in keys]
    forever = await store.update(forever.key, b"", expected=forever.modified)
    longer = await store.update(longer.key, b"", expected=longer.modified, ttl=600)
    await backend.let_expire(3)
    events = await next_events(watch, 6)
    assert (events[-1].key, events[-1].entry) == ("/registry/as-it-was", None)
    assert (await store.list("/registry/")).entries == [forever, longer]
    await watch.aclose()


async def test_a_time_to_live_survives_a_restart(backend: Backend) -> None:
    store = await backend.open()
    entry = await store.create("/registry/a", b"", ttl=2)
    await store.close()
    store = await backend.open()
    watch = store.watch("/registry/", after=entry.modified)
    await backend.let_expire(2)
    (event,) = await next_events(watch, 1)
    assert (event.key, event.entry, event.previous) == ("/registry/a", None, entry)
    await store.close()


async def test_a_key_deleted_and_created_again_does_not_inherit_the_old_time(backend: Backend, store: Store) -> None:
    first = await store.create("/registry/a", b"", ttl=2)
    await store.delete("/registry/a", expected=first.modified)
    again = await store.create("/registry/a", b"")
    marker = await store.create("/registry/marker", b"", ttl=2)
    watch = store.watch("/registry/", after=marker.modified)
    await backend.let_expire(3)
    (event,) = await next_events(watch, 1)
    assert event.key == "/registry/marker"
    assert await store.get("/registry/a") == again
    await watch.aclose()
