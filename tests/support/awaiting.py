"""Waiting for what controllers do: until an object is as it should be, or gone. A watch tells; nothing sleeps."""

from __future__ import annotations

from collections.abc import Callable

from patience import PATIENCE

from pilothouse.client import Json, ListOptions, ResourceClient, name_of


async def until(objects: ResourceClient, name: str, holds: Callable[[Json], object] = bool) -> Json:
    """The object, once something holds of it."""
    found = await _watched(objects, name, lambda obj: obj is not None and bool(holds(obj)))
    assert found is not None
    return found


async def until_gone(objects: ResourceClient, name: str) -> None:
    await _watched(objects, name, lambda obj: obj is None)


async def _watched(objects: ResourceClient, name: str, holds: Callable[[Json | None], bool]) -> Json | None:
    only = f"metadata.name={name}"
    listing = await objects.list(ListOptions(field_selector=only))
    last: Json | None = next(iter(listing["items"]), None)
    if holds(last):
        return last
    since = listing["metadata"]["resourceVersion"]
    options = ListOptions(field_selector=only, resource_version=since, timeout_seconds=PATIENCE)
    async with await objects.watch(options) as watch:
        async for event in watch:
            assert name_of(event.object) == name
            last = None if event.type == "DELETED" else event.object
            if holds(last):
                return last
    raise AssertionError(f"{name} never came to be as it should: {last}")


async def until_all(objects: ResourceClient, holds: Callable[[list[Json]], object]) -> list[Json]:
    """All objects, once something holds of them together."""
    listing = await objects.list()
    found = {name_of(item): item for item in listing["items"]}
    if holds([*found.values()]):
        return [*found.values()]
    options = ListOptions(resource_version=listing["metadata"]["resourceVersion"], timeout_seconds=PATIENCE)
    async with await objects.watch(options) as watch:
        async for event in watch:
            found.pop(name_of(event.object), None)
            if event.type != "DELETED":
                found[name_of(event.object)] = event.object
            if holds([*found.values()]):
                return [*found.values()]
    raise AssertionError(f"they never came to be as they should: {[*found.values()]}")
