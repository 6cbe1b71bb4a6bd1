"""Conversions in the midst of computations that cannot wait: field ownership, which looks at an object in the
versions of all its managers.

A computation that needs a conversion nobody has made yet is broken off, the conversion is made, and the computation
starts again. It finds what was converted before, so it comes further each time, and to an end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeAlias

import orjson

from pilothouse.apiserver.endpoints.fieldmanager.versions import copy_of
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.extensions.conversion.converter import WebhookConverter
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_Known: TypeAlias = dict[tuple[str, bytes], bytes]
_known: ContextVar[_Known] = ContextVar("conversions of this request")


class ConversionNeeded(Exception):
    """Ends a computation that `to_completion` will start again."""

    def __init__(self, obj: Json, desired: str) -> None:
        super().__init__(f"{obj['apiVersion']} in {desired}")
        self.obj = obj
        self.desired = desired


def converted(obj: Json, desired: str) -> Json:
    """Raises ConversionNeeded unless it was made before in this request."""
    if obj["apiVersion"] == desired:
        return obj
    found = _known.get({}).get((desired, orjson.dumps(obj)))
    if found is None:
        raise ConversionNeeded(obj, desired)
    made: Json = orjson.loads(found)
    return made


def waiting(convert: Callable[[Json], Json], converter: WebhookConverter) -> Callable[[Json], Awaitable[Json]]:
    """A conversion that waits for the webhook, from one that is broken off for it."""

    async def conversion(obj: Json) -> Json:
        async def once() -> Json:
            return convert(copy_of(obj))

        return await to_completion(once, converter)

    return conversion


async def to_completion(compute: Callable[[], Awaitable[Json]], converter: WebhookConverter) -> Json:
    """Raises what `compute` raises, and StatusError when a conversion fails."""
    known: _Known = {}
    token = _known.set(known)
    try:
        while True:
            try:
                return await compute()
            except ConversionNeeded as need:
                await _make(need, converter, known)
    finally:
        _known.reset(token)


async def _make(need: ConversionNeeded, converter: WebhookConverter, known: _Known) -> None:
    sent = orjson.dumps(need.obj)
    try:
        made = await converter.convert([orjson.loads(sent)], need.desired)
    except Undecodable as error:
        raise StatusError(str(error)) from None
    known[need.desired, sent] = orjson.dumps(made[0])
