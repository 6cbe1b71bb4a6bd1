"""CBOR encoder: strings are byte strings, bytes carry the base64 tag, floats have their shortest form."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from struct import pack, unpack
from typing import Any

from pilothouse.machinery.cbor.wellformed import (
    ARRAY,
    BYTES,
    FLOATS,
    MAP,
    NEGATIVE,
    SELF_DESCRIBED,
    SIMPLE,
    UNSIGNED,
    head,
)
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

_SHORT = [head(BYTES, length) for length in range(256)]
_BASE64_TAG = b"\xd6"
_CONSTANTS = {False: b"\xf4", True: b"\xf5", None: b"\xf6"}


def encode(value: Any) -> bytes:
    """Return the data item. Python `bytes` represent Go's []byte; keys keep their order."""
    out: list[bytes] = []
    _write(value, out.append)
    return b"".join(out)


def encode_object(obj: Any) -> bytes:
    """Return the data item inside the self-described tag."""
    return SELF_DESCRIBED + encode(obj)


def _write(value: Any, put: Callable[[bytes], None]) -> None:
    checkpoint()
    if isinstance(value, str):
        _write_string(value.encode(), put)
    elif isinstance(value, dict):
        put(head(MAP, len(value)))
        for key, member in value.items():
            _write_string(key.encode(), put)
            _write(member, put)
    elif isinstance(value, list):
        put(head(ARRAY, len(value)))
        for item in value:
            _write(item, put)
    elif isinstance(value, bool) or value is None:
        put(_CONSTANTS[value])
    elif isinstance(value, int):
        put(head(UNSIGNED, value) if value >= 0 else head(NEGATIVE, -1 - value))
    elif isinstance(value, float):
        put(_float(value))
    else:
        put(_BASE64_TAG)
        _write_string(value, put)


def _write_string(data: bytes, put: Callable[[bytes], None]) -> None:
    put(_SHORT[len(data)] if len(data) < 256 else head(BYTES, len(data)))
    put(data)


def _float(value: float) -> bytes:
    """Encode in the shortest lossless form. Raises ValueError for NaN and infinities."""
    for info, form in FLOATS.items():
        with suppress(OverflowError):
            packed = pack(form, value)
            if unpack(form, packed)[0] == value:
                return bytes((SIMPLE << 5 | info,)) + packed
    raise ValueError(f"{value} has no place in CBOR here")


_NULL = b"\xf6"


def with_type(piece: bytes, kind: GroupVersionKind) -> bytes:
    """Add kind and apiVersion to an encoded map, in front or at the end."""
    count, start = _pairs(piece)
    parts = [
        encode("kind") + encode(kind.kind) + encode("apiVersion") + encode(kind.api_version),
        piece[start:],
    ]
    if random.getrandbits(1):
        parts.reverse()
    return b"".join((head(MAP, count + 2), *parts))


def _pairs(piece: bytes) -> tuple[int, int]:
    """Return (number of pairs, index of the first pair) of an encoded map."""
    info = piece[0] & 31
    if info < 24:
        return info, 1
    start = 1 + (1 << (info - 24))
    return int.from_bytes(piece[1:start], "big"), start


def rotated(obj: Json) -> Json:
    """Return a copy whose keys are rotated by a random amount."""
    keys = [*obj]
    first = random.randrange(len(keys)) if keys else 0
    return {key: obj[key] for key in (*keys[first:], *keys[:first])}


def head_of_list(fields: Json, count: int, *, null_when_empty: bool) -> bytes:
    """Return the encoding of a list object up to its items; the items must be the last field. null_when_empty: encode
    zero items as null."""
    parts = [SELF_DESCRIBED, head(MAP, len(fields))]
    *before, items = fields
    for name in before:
        parts += encode(name), encode(fields[name])
    parts += encode(items), _NULL if null_when_empty and not count else head(ARRAY, count)
    return b"".join(parts)


def watch_event(event_type: str, whole: bytes) -> bytes:
    """Return one watch event; events in a CBOR sequence need no framing. `whole`: the encoded object, including its
    tag."""
    parts = [encode("type") + encode(event_type), encode("object") + whole]
    if random.getrandbits(1):
        parts.reverse()
    return b"".join((SELF_DESCRIBED, head(MAP, 2), *parts))
