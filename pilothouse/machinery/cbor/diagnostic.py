"""CBOR in diagnostic notation (RFC 8949, section 8), by which upstream shows a body that it can not make out."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.cbor.decoding import ByteText, decode
from pilothouse.machinery.cbor.wire import SELF_DESCRIBED, SELF_DESCRIBED_TAG


def diagnose(data: bytes) -> str:
    """Return a readable data item as text; of tags only the one around the whole is shown. Raises CborError."""
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
