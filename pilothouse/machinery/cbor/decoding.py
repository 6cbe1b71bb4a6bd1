"""CBOR decoder with upstream's rules: values without a JSON equivalent and ambiguous values are rejected.

Rejected: duplicate keys, keys other than strings, invalid UTF-8, integers beyond int64, bignums, infinities and unknown
simple values. Tags are transparent. Declared lengths are bounded by the available bytes, and CBOR here has no shared
references, so a value is never larger than its bytes allow.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from math import isfinite, modf
from struct import error as StructError
from struct import unpack
from typing import Any

import orjson

from pilothouse.machinery.cbor.wellformed import (
    ARRAY,
    BASE16,
    BASE64,
    BASE64URL,
    BREAK,
    BYTES,
    FALSE,
    FLOATS,
    INDEFINITE,
    INT64,
    MAP,
    MAX_DEPTH,
    NAMES,
    NEGATIVE,
    NULL,
    SELF_DESCRIBED,
    SELF_DESCRIBED_TAG,
    SIMPLE,
    TAG,
    TEXT,
    TRUE,
    UNSIGNED,
    CborError,
    check,
    expect_tag_content,
)
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.schema.gotime import TimeError, canonical_time

_NEVER = 1 << 62
"""An index beyond any input."""


class ByteText(str):
    """Text decoded from a byte string, for callers that distinguish byte strings from text strings."""

    __slots__ = ()


def decode(data: bytes, *, typed: bool = False, tell_bytes: bool = False) -> Any:
    """Return the value: dicts, lists, strings, numbers, booleans and None. Raises CborError.

    typed: keep floats as floats and the content of time tags, for callers with type information. Otherwise whole
    numbers become integers, as in JSON, and times become RFC 3339 text. tell_bytes: return byte strings as ByteText.
    """
    reader = _Reader(data, typed, tell_bytes)
    try:
        value = reader.value(0, 0)
        if reader.at == len(data):
            return value
    except (CborError, IndexError, StructError):
        check(data)
        raise
    check(data)
    raise AssertionError("bytes are left of a whole data item")


class _Reader:
    """Optimistic reader: on a failure, `check` runs first and supplies upstream's message for malformed bytes."""

    __slots__ = ("_data", "_size", "_tell_bytes", "_typed", "at")

    def __init__(self, data: bytes, typed: bool, tell_bytes: bool) -> None:
        self._data = data
        self._size = len(data)
        self._typed = typed
        self._tell_bytes = tell_bytes
        self.at = 0

    def value(self, depth: int, later: int) -> Any:
        """`later`: enclosing tag that selects the text encoding of byte strings; 0 = no tag."""
        checkpoint()
        first = self._data[self.at]
        major, info = first >> 5, first & 31
        if info < 24:
            argument = info
            self.at += 1
        else:
            major, info, argument = self._head()
        if BYTES <= major <= TEXT:
            data = self._take(argument) if info != INDEFINITE else b"".join(self._chunks(major))
            if major == TEXT:
                return _utf8(data)
            if not later and not self._tell_bytes:
                return data.decode("utf-8", "replace")
            text = _as_text(data, later)
            return ByteText(text) if self._tell_bytes else text
        if major == MAP:
            return self._map(self._places(info, argument, depth), depth + 1, later)
        if major == ARRAY:
            return [self.value(depth + 1, later) for _ in self._places(info, argument, depth)]
        if major <= NEGATIVE:
            number = argument if major == UNSIGNED else -1 - argument
            if argument >= INT64:
                raise CborError(
                    f"cbor: cannot unmarshal {NAMES[major]} into Go value of type int64 ({number} overflows Go's int64)"
                )
            return number
        if major == SIMPLE:
            return self._simple(info, argument)
        return self._tagged(argument, depth, later)

    def _head(self) -> tuple[int, int, int]:
        first = self._data[self.at]
        self.at += 1
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info, info
        if info == INDEFINITE and BYTES <= major <= MAP:
            return major, info, 0
        return major, info, int.from_bytes(self._take(1 << (info - 24) if info < 28 else _NEVER), "big")

    def _take(self, length: int) -> bytes:
        start = self.at
        self.at = end = start + length
        if end > self._size:
            raise IndexError
        return self._data[start:end]

    def _chunks(self, major: int) -> Iterator[bytes]:
        while not self._ended():
            kind, info, length = self._head()
            if kind != major or info == INDEFINITE:
                raise IndexError
            chunk = self._take(length)
            if major == TEXT:
                _utf8(chunk)
            yield chunk

    def _ended(self) -> bool:
        ended = self._data[self.at] == BREAK
        self.at += ended
        return ended

    def _places(self, info: int, count: int, depth: int) -> Iterable[int]:
        """Yield the item indexes of a collection; iterate while reading."""
        if depth >= MAX_DEPTH:
            raise IndexError
        return self._until_break() if info == INDEFINITE else range(count)

    def _until_break(self) -> Iterator[int]:
        index = 0
        while not self._ended():
            yield index
            index += 1

    def _map(self, places: Iterable[int], depth: int, later: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        read = self.value
        for index in places:
            key = read(depth, later)
            if not isinstance(key, str):
                raise CborError(f"cbor: cannot unmarshal {word_for(key)} into Go value of type string")
            if key in members:
                raise CborError(f"cbor: found duplicate map key {quote(key)} at map element index {index}")
            members[key] = read(depth, later)
        return members

    def _simple(self, info: int, argument: int) -> Any:
        if info in FLOATS:
            number = unpack(FLOATS[info], argument.to_bytes(1 << (info - 24), "big"))[0]
            if not isfinite(number):
                raise IndexError
            return number if self._typed or not (number.is_integer() and abs(number) < 1e18) else int(number)
        if argument in (FALSE, TRUE):
            return argument == TRUE
        if argument == NULL:
            return None
        raise CborError(
            f"cbor: data item of cbor type primitives is not accepted by protocol: "
            f"simple value {argument} is not recognized"
        )

    def _tagged(self, tag: int, depth: int, later: int) -> Any:
        """Read the content of a tag. Unknown tags are skipped, at any nesting."""
        while True:
            content = self._data[self.at]
            if not self._typed:
                expect_tag_content(tag, content)
            if tag in (2, 3):
                raise IndexError
            if tag in (BASE64URL, BASE64, BASE16):
                later = tag
            if tag in (0, 1) and not self._typed:
                return rfc3339(self.value(depth, 0))
            if content >> 5 != TAG:
                return self.value(depth, later)
            _, _, tag = self._head()


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CborError("cbor: invalid UTF-8 string") from None


def _as_text(data: bytes, later: int) -> str:
    """Encode by the enclosing tag; without a tag, decode UTF-8 and replace invalid bytes, as Go does."""
    if later == BASE64:
        return b64encode(data).decode()
    if later == BASE64URL:
        return urlsafe_b64encode(data).rstrip(b"=").decode()
    return data.hex() if later == BASE16 else data.decode("utf-8", "replace")


def word_for(value: Any) -> str:
    """Return upstream's type name for a value from `decode`."""
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return NAMES[SIMPLE]
    if isinstance(value, int):
        return NAMES[UNSIGNED if value >= 0 else NEGATIVE]
    if isinstance(value, str):
        return NAMES[BYTES if isinstance(value, ByteText) else TEXT]
    return NAMES[MAP if isinstance(value, dict) else ARRAY]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNSHOWN = (
    "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
    "Time.MarshalText: year outside of range [0,9999]"
)


def rfc3339(value: str | int | float) -> str:
    """Return the time as text; seconds since the epoch become UTC. Raises CborError."""
    return _checked(value) if isinstance(value, str) else _since_epoch(value)


def _checked(text: str) -> str:
    try:
        canonical_time(text)
    except TimeError as error:
        raise CborError(f"cbor: cannot set {text} for time.Time: {error}") from None
    return text


def _since_epoch(number: int | float) -> str:
    fraction, whole = modf(number) if isinstance(number, float) else (0.0, number)
    seconds, nanoseconds = divmod(int(whole) * 10**9 + int(fraction * 1e9), 10**9)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise CborError(_UNSHOWN) from None
    digits = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{digits}Z"


def diagnose(data: bytes) -> str:
    """Return a data item in diagnostic notation; of the tags, only the outermost is shown. Raises CborError."""
    if data.startswith(SELF_DESCRIBED):
        return f"{SELF_DESCRIBED_TAG}({diagnose(data[len(SELF_DESCRIBED) :])})"
    return _shown(decode(data, typed=True, tell_bytes=True))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, ByteText):
        return f"'{value}'"
    return orjson.dumps(value).decode()
