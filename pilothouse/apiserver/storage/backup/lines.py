"""Entries as JSON lines, for backup files and the maintenance endpoint."""

from __future__ import annotations

import base64
from typing import Any

from pilothouse.apiserver.storage.backup.model import SavedEntry


def entry_in(line: dict[str, Any]) -> SavedEntry:
    """Parse an entry. Raises KeyError or ValueError for malformed lines."""
    return SavedEntry(line["key"], bytes_in(line), line["created"], line["modified"], line.get("ttl", 0))


def line_of(entry: SavedEntry) -> dict[str, Any]:
    line: dict[str, Any] = {"key": entry.key, "created": entry.created, "modified": entry.modified}
    if entry.ttl:
        line["ttl"] = entry.ttl
    return line | content_of(entry.value)


def content_of(value: bytes) -> dict[str, str]:
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(value).decode()}


def bytes_in(line: dict[str, Any]) -> bytes:
    return str(line["text"]).encode() if "text" in line else base64.b64decode(line["bytes"])
