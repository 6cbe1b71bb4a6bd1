"""HPACK encoder for responses and requests; stateless, without dynamic table."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.head_fields import check_fields, check_request
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http2.fields import CONNECTION_FIELDS
from pilothouse.apiserver.http2.hpack.integers import write_integer
from pilothouse.apiserver.http2.hpack.static_table import NAME_INDEX, STATUS_INDEX

_LENGTHS: Final = tuple(bytes((length,)) for length in range(127))


class _Names(dict[bytes, bytes]):
    """Field name → start of a literal field; empty for forbidden names.

    Only a few short custom names are cached, so that a hit costs a plain lookup.
    """

    def __missing__(self, name: bytes) -> bytes:
        start = _start(name.lower())
        if len(name) <= _LONGEST_NAME:
            if len(self) >= _MOST_NAMES:
                self.clear()
            self[name] = start
        return start


def _start(name: bytes) -> bytes:
    if name in CONNECTION_FIELDS:
        return b""
    if index := NAME_INDEX.get(name):
        return write_integer(index, 0x0F, 0)
    return b"\0" + write_integer(len(name), 0x7F, 0) + name


_MOST_NAMES: Final = 1024
_LONGEST_NAME: Final = 64
_NAMES: Final = _Names()


def encode_response(status: int, headers: Headers) -> bytes:
    """Encode the field block of a response. Raises InvalidHead."""
    check_fields(headers)
    index = STATUS_INDEX.get(status)
    return _encoded([bytes((0x80 | index,)) if index else b"\x08\x03%d" % status], headers)


def encode_request(method: bytes, target: bytes, authority: bytes, headers: Headers) -> bytes:
    """Encode the field block of a request over TLS. Raises InvalidHead."""
    check_request(method, target, [(b"host", authority), *headers])
    out = [_METHODS.get(method) or b"\x02" + _string(method), _HTTPS]
    out += (b"\x01", _string(authority), b"\x04", _string(target))
    return _encoded(out, headers)


_METHODS: Final = {b"GET": b"\x82", b"POST": b"\x83"}
_HTTPS: Final = b"\x87"


def _string(value: bytes) -> bytes:
    return write_integer(len(value), 0x7F, 0) + value


def _encoded(out: list[bytes], headers: Headers) -> bytes:
    append, names = out.append, _NAMES
    for name, value in headers:
        start = names[name]
        if start:
            length = len(value)
            append(start)
            append(_LENGTHS[length] if length < 127 else write_integer(length, 0x7F, 0))
            append(value)
    return b"".join(out)
