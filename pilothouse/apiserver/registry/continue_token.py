"""Continue tokens: the start of the next page of a list, and the revision of the list."""

from __future__ import annotations

import base64
import binascii
import posixpath
from typing import Any

import orjson

from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.gofmt import json_type

_VERSION = "meta.k8s.io/v1"
_INCONSISTENT = -1
_INT64 = range(-(2**63), 2**63)
_TYPES: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}


@dataclass(frozen=True, slots=True)
class Position:
    """The page starts after the key `after`. Revision None means the current revision."""

    after: str
    revision: int | None


def encode(position: Position, prefix: str) -> str:
    # Upstream encodes the first possible key after the last returned key.
    start = position.after.removeprefix(prefix) + "\x00"
    revision = _INCONSISTENT if position.revision is None else position.revision
    raw = orjson.dumps({"v": _VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> Position:
    """Return the position in a token. The position is always inside `prefix`. Raises BadRequest."""
    value = _fields(_json(_bytes(token)))
    if value.get("v") != _VERSION:
        raise _invalid(f": server does not recognize this encoded version {value.get('v') or ''}")
    revision, start = value.get("rv") or 0, value.get("start") or ""
    if not revision:
        raise _invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start:
        raise _invalid(": encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else "/" + start
    if posixpath.normpath(key) != key or key.startswith("//"):  # POSIX, unlike Go, treats // as clean
        raise _invalid(f": {start}")
    return Position(prefix + key[1:].removesuffix("\x00"), None if revision < 0 else revision)


def _bytes(token: str) -> bytes:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(f": illegal base64 data at input byte {_first_bad(token)}") from None


def _json(raw: bytes) -> object:
    try:
        return parse(raw).value
    except JsonError as error:
        raise _invalid(f": {error}") from None


def _fields(value: Any) -> dict[str, Any]:
    """Check the types of the fields: clients can forge tokens."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f": json: cannot unmarshal {json_type(value)} into Go value of type storage.continueToken")
    for name, (kind, go_type) in _TYPES.items():
        found = value.get(name)
        if found is not None and (type(found) is not kind or (kind is int and found not in _INT64)):
            shown = f"number {found}" if type(found) in (int, float) else json_type(found)
            raise _invalid(
                f": json: cannot unmarshal {shown} into Go struct field continueToken.{name} of type {go_type}"
            )
    return value


def _first_bad(token: str) -> int:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return next((i for i, char in enumerate(token) if char not in alphabet), len(token) - len(token) % 4)


def _invalid(detail: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid{detail}")
