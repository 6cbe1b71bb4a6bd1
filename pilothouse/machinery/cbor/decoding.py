"""CBOR decoder with upstream's rules: values without a JSON equivalent and ambiguous values are rejected.

Rejected: duplicate keys, keys other than strings, invalid UTF-8, integers beyond int64, bignums, infinities and unknown
simple values. Tags are transparent. Declared lengths are bounded by the available bytes, and CBOR here has no shared
references, so a value is never larger than its bytes allow.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
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
_ITEMS_PER_CHECKPOINT = 32
_TIME = 1
"""The tag of times, also for times as text."""
_NO_KEY = object()
"""Sentinel: the next item of a map is a key."""


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
        value = reader.value()
        if reader.at == len(data):
            return value
    except UnicodeDecodeError:
        check(data)
        raise CborError("cbor: invalid UTF-8 string") from None
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

    def value(self) -> Any:
        """Read one data item. The loop has no recursion and few calls, because every byte can be an item."""
        data, size, at = self._data, self._size, self.at
        outer: list[tuple[Any, int, Any, int]] = []
        into: Any = None  # the innermost open collection
        left, key = 1, _NO_KEY  # items left in the collection, negative until a break; the key that awaits its value
        inherited = later = 0  # tag that selects the text encoding of byte strings: of the collection, of the next item
        while True:
            first = data[at]
            at += 1
            if first < 24:
                value: Any = first
            elif first == BREAK and left < 0 and key is _NO_KEY:
                value = into
                into, left, key, inherited = outer.pop()
            else:
                major, info = first >> 5, first & 31
                argument = info
                if info >= 24 or major == TAG:
                    self.at = at
                    argument = self._argument(major, info)
                    if major == TAG:
                        later = self._skip_tags(argument, later)
                        major, info, argument = self._head()
                    at = self.at
                if ARRAY <= major <= MAP:
                    if len(outer) >= MAX_DEPTH:
                        raise IndexError
                    value = [] if major == ARRAY else {}
                    if argument or info == INDEFINITE:
                        checkpoint()
                        outer.append((into, left, key, inherited))
                        into, left, key, inherited = value, -1 if info == INDEFINITE else argument, _NO_KEY, later
                        continue
                elif major == TEXT and info != INDEFINITE and later != _TIME:
                    start, at = at, at + argument
                    if at > size:
                        raise IndexError
                    value = data[start:at].decode()
                else:
                    self.at = at
                    value = self._scalar(major, info, argument, later)
                    at = self.at
            while True:
                if into is None:
                    self.at = at
                    return value
                if into.__class__ is list:
                    into.append(value)
                elif key is not _NO_KEY:
                    into[key] = value
                    key = _NO_KEY
                else:
                    if not isinstance(value, str):
                        raise CborError(f"cbor: cannot unmarshal {word_for(value)} into Go value of type string")
                    if value in into:
                        raise CborError(
                            f"cbor: found duplicate map key {quote(value)} at map element index {len(into)}"
                        )
                    key = value
                    break
                left -= 1
                if left:
                    if not left % _ITEMS_PER_CHECKPOINT:
                        checkpoint()
                    break
                value = into
                into, left, key, inherited = outer.pop()
            later = inherited

    def _head(self) -> tuple[int, int, int]:
        first = self._data[self.at]
        self.at += 1
        return first >> 5, first & 31, self._argument(first >> 5, first & 31)

    def _argument(self, major: int, info: int) -> int:
        if info < 24:
            return info
        if info == INDEFINITE and BYTES <= major <= MAP:
            return 0
        return int.from_bytes(self._take(1 << (info - 24) if info < 28 else _NEVER), "big")

    def _take(self, length: int) -> bytes:
        start = self.at
        self.at = end = start + length
        if end > self._size:
            raise IndexError
        return self._data[start:end]

    def _chunks(self, major: int) -> Iterator[bytes]:
        while not self._ended():
            checkpoint()
            kind, info, length = self._head()
            if kind != major or info == INDEFINITE:
                raise IndexError
            chunk = self._take(length)
            if major == TEXT:
                chunk.decode()
            yield chunk

    def _ended(self) -> bool:
        ended = self._data[self.at] == BREAK
        self.at += ended
        return ended

    def _scalar(self, major: int, info: int, argument: int, later: int) -> Any:
        if later == _TIME:
            return rfc3339(self._scalar(major, info, argument, 0))
        if BYTES <= major <= TEXT:
            data = self._take(argument) if info != INDEFINITE else b"".join(self._chunks(major))
            if major == TEXT:
                return data.decode()
            if not later and not self._tell_bytes:
                return data.decode("utf-8", "replace")
            text = _as_text(data, later)
            return ByteText(text) if self._tell_bytes else text
        if major == SIMPLE:
            return self._simple(info, argument)
        number = argument if major == UNSIGNED else -1 - argument
        if argument >= INT64:
            raise CborError(
                f"cbor: cannot unmarshal {NAMES[major]} into Go value of type int64 ({number} overflows Go's int64)"
            )
        return number

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

    def _skip_tags(self, tag: int, later: int) -> int:
        """Read nested tags up to their content. Return `later` of the content. Unknown tags are skipped."""
        while True:
            checkpoint()
            content = self._data[self.at]
            if not self._typed:
                expect_tag_content(tag, content)
            if tag in (2, 3):
                raise IndexError
            if tag in (BASE64URL, BASE64, BASE16):
                later = tag
            if tag in (0, 1) and not self._typed:
                return _TIME
            if content >> 5 != TAG:
                return later
            _, _, tag = self._head()


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
