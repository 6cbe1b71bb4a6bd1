"""Small messages read at once: the few fields they have, in wire order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pilothouse.machinery.protobuf.errors import ProtobufError
from pilothouse.machinery.protobuf.wire import BYTES, TRUNCATED, read_size, read_varint, signed, skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Raw: TypeAlias = int | bytes


def scan(data: bytes, pos: int, end: int, known: tuple[int, ...]) -> list[tuple[int, Raw]]:
    """The tags and values of data[pos:end], known tags only; these are varints or bytes."""
    found: list[tuple[int, Raw]] = []
    while pos < end:
        key, pos = read_size(data, pos)
        if key not in known:
            refuse_wire_type(key, known)
            pos = skip(data, pos, key)
        elif key & 7 == BYTES:
            size, pos = read_size(data, pos)
            found.append((key, data[pos : pos + size]))
            pos += size
        else:
            number, pos = read_varint(data, pos)
            found.append((key, number))
    if pos != end:
        raise ProtobufError(TRUNCATED)
    return found


def fields_of(body: bytes, *known: int) -> dict[int, Raw]:
    """The fields of a whole message by tag, the last of each."""
    return dict(scan(body, 0, len(body), known))


def refuse_wire_type(key: int, known: Iterable[int]) -> None:
    """A field that is known under another wire type is an error; a field that is not known at all is skipped."""
    if any(key >> 3 == other >> 3 for other in known):
        raise ProtobufError(f"proto: wrong wireType = {key & 7} for field {key >> 3}")


def int_of(found: Mapping[int, Raw], key: int, *, bits: int = 64) -> int:
    number = found.get(key, 0)
    assert isinstance(number, int)
    return signed(number, bits)


def bytes_of(found: Mapping[int, Raw], key: int) -> bytes:
    raw = found.get(key, b"")
    assert isinstance(raw, bytes)
    return raw


def text_of(found: Mapping[int, Raw], key: int, *, missing: str = "") -> str:
    return bytes_of(found, key).decode("utf-8", "replace") if key in found else missing


def texts_of(found: Iterable[tuple[int, Raw]], key: int) -> list[str]:
    """Every occurrence of a repeated string."""
    return [raw.decode("utf-8", "replace") for at, raw in found if at == key and isinstance(raw, bytes)]
