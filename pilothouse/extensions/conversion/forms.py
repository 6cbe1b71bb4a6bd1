"""Stored form and served form of custom resources."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.extensions.conversion.converted_values import ConvertedValue
from pilothouse.extensions.conversion.converter import MAX_OBJECTS, WebhookConverter
from pilothouse.extensions.customresources.conversion import as_written
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.objects import Json


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
        made = map(self._shown.encode, await self._in_version(objects, self._shown.api_version))
        return list(map(ConvertedValue, made, stale))

    async def stored(self, shown: bytes) -> bytes:
        if self._shown.api_version == self._stored.api_version:
            return shown
        return self._stored.encode((await self._in_version([orjson.loads(shown)], self._stored.api_version))[0])

    async def _in_version(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        others = [obj for obj in objects if obj["apiVersion"] != api_version]
        converted = await self._converter.convert(others, api_version) if others else []
        schema = self._resource.schemas.of(api_version.rpartition("/")[2])
        for obj in converted:
            schema.prune(obj, drop_invalid=True)
        rest = iter(converted)
        return [obj if obj["apiVersion"] == api_version else next(rest) for obj in objects]


def _codec(resource: CustomResource, version: str) -> ObjectCodec:
    kind = resource.kind(version)
    return ObjectCodec(kind.kind, kind.api_version, lambda _: {})
