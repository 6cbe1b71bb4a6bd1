"""Objects, lists and watch events put together from data items that were encoded before.

The order of keys is left to chance, as upstream does: it means nothing, and nobody shall rely on it.
"""

from __future__ import annotations

import random

from pilothouse.machinery.cbor.encoding import encode
from pilothouse.machinery.cbor.wire import ARRAY, MAP, SELF_DESCRIBED, head
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

_NULL = b"\xf6"


def with_type(piece: bytes, kind: GroupVersionKind) -> bytes:
    """Return the map with kind and apiVersion, which it lacks, in front or behind."""
    count, start = _pairs(piece)
    parts = [
        encode("kind") + encode(kind.kind) + encode("apiVersion") + encode(kind.api_version),
        piece[start:],
    ]
    if random.getrandbits(1):
        parts.reverse()
    return b"".join((head(MAP, count + 2), *parts))


def _pairs(piece: bytes) -> tuple[int, int]:
    """How many pairs the map has, and where they begin."""
    info = piece[0] & 31
    if info < 24:
        return info, 1
    start = 1 + (1 << (info - 24))
    return int.from_bytes(piece[1:start], "big"), start


def rotated(obj: Json) -> Json:
    """Return the object with its keys from some key on, then those before it."""
    keys = [*obj]
    first = random.randrange(len(keys)) if keys else 0
    return {key: obj[key] for key in (*keys[first:], *keys[:first])}


def head_of_list(fields: Json, count: int, *, null_when_empty: bool) -> bytes:
    """Return a list up to its items, which the last of its fields has. They are null if there are none to be."""
    parts = [SELF_DESCRIBED, head(MAP, len(fields))]
    *before, items = fields
    for name in before:
        parts += encode(name), encode(fields[name])
    parts += encode(items), _NULL if null_when_empty and not count else head(ARRAY, count)
    return b"".join(parts)


def watch_event(event_type: str, whole: bytes) -> bytes:
    """Return one event of a stream, in which items need no frame. `whole` is the object as it would be an answer."""
    parts = [encode("type") + encode(event_type), encode("object") + whole]
    if random.getrandbits(1):
        parts.reverse()
    return b"".join((SELF_DESCRIBED, head(MAP, 2), *parts))
