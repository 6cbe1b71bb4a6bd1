"""A store that presents the objects of a definition in one version.

Conversions precede a write, both to the stored and to the served form, so a failing webhook leaves the store unchanged.
Each object is converted once per version, regardless of the number of readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from pilothouse.apiserver.storage.interface import Batch, Entry, Revision, Store, Watch
from pilothouse.apiserver.storage.json_view import ShownAsJson, ShownWatch
from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.extensions.conversion.converter import MAX_OBJECTS, ConvertedValue, ConvertedValues, WebhookConverter
from pilothouse.extensions.customresources.conversion import as_written
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.names import version_of
from pilothouse.machinery.objects import Json


class ConvertingStore(ShownAsJson):
    """Raises Undecodable, in addition to the errors of a store, if the webhook fails."""

    def __init__(self, store: Store, forms: Forms, cache: ConvertedValues) -> None:
        super().__init__(store)
        self._forms = forms
        self._kept = cache
        self._owner = cache.new_owner()

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        stored = await self._forms.stored(value)
        (shown,) = await self._forms.shown([stored])
        return self._keep(await self._store.create(key, stored, ttl=ttl), shown)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        stored = await self._forms.stored(value)
        (shown,) = await self._forms.shown([stored])
        return self._keep(await self._store.update(key, stored, expected=expected, ttl=ttl), shown)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        """Delete without converting a concurrently changed object: the delete fails anyway."""
        last = self._kept.get(self._owner, key, expected)
        if last is None:
            current = await self.get(key)
            last = ConvertedValue(current.value if current is not None else b"", stale=False)
        return replace(await self._store.delete(key, expected=expected), value=last.value)

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return _ConvertingWatch(self._store.watch(prefix, after=after), self)

    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries in this version."""
        cached = [(entry, self._kept.get(self._owner, entry.key, entry.modified)) for entry in entries]
        converted = iter(await self._forms.shown([entry.value for entry, value in cached if value is None]))
        return [
            self._keep(entry, next(converted)) if value is None else _shown(entry, value) for entry, value in cached
        ]

    def _keep(self, entry: Entry, shown: ConvertedValue) -> Entry:
        self._kept.put(self._owner, entry, shown)
        return _shown(entry, shown)


def _shown(entry: Entry, shown: ConvertedValue) -> Entry:
    return replace(entry, value=shown.value, stale=entry.stale or shown.stale)


class _ConvertingWatch(ShownWatch):
    async def _transformed(self, batch: Batch) -> Batch:
        shown = iter(await self._store.shown([event.entry for event in batch.events if event.entry is not None]))
        events = (event if event.entry is None else replace(event, entry=next(shown)) for event in batch.events)
        return replace(batch, events=tuple(events))


class Forms:
    """Converts objects of one version between stored and served form. Raises Undecodable if the webhook fails."""

    def __init__(self, resource: CustomResource, version: str, converter: WebhookConverter) -> None:
        self._resource = resource
        self._converter = converter
        self._shown = _codec(resource, version)
        self._stored = _codec(resource, resource.storage_version.name)

    async def shown(self, stored: Sequence[bytes]) -> list[ConvertedValue]:
        values: list[ConvertedValue] = []
        for start in range(0, len(stored), MAX_OBJECTS):
            values += await self._part_shown(stored[start : start + MAX_OBJECTS])
            await yield_to_loop()  # yield between the parts of a long list
        return values

    async def _part_shown(self, stored: Sequence[bytes]) -> list[ConvertedValue]:
        objects = [as_written(self._resource, value) for value in stored]
        stale = [
            (obj["apiVersion"] != self._stored.api_version or bool(orjson.loads(value) != obj))
            for value, obj in zip(stored, objects, strict=True)
        ]
        converted = map(self._shown.encode, await self._in_version(objects, self._shown.api_version))
        return list(map(ConvertedValue, converted, stale))

    async def stored(self, shown: bytes) -> bytes:
        if self._shown.api_version == self._stored.api_version:
            return shown
        return self._stored.encode((await self._in_version([orjson.loads(shown)], self._stored.api_version))[0])

    async def _in_version(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        others = [obj for obj in objects if obj["apiVersion"] != api_version]
        converted = await self._converter.convert(others, api_version) if others else []
        schema = self._resource.schemas.of(version_of(api_version))
        for obj in converted:
            schema.prune(obj, drop_invalid=True)
        rest = iter(converted)
        return [obj if obj["apiVersion"] == api_version else next(rest) for obj in objects]


def _codec(resource: CustomResource, version: str) -> ObjectCodec:
    kind = resource.kind(version)
    return ObjectCodec(kind.kind, kind.api_version, lambda _: {})
