"""Audit annotations of a request; each key is write-once."""

from __future__ import annotations

import logging

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation.names import is_qualified_name

METADATA = "Metadata"
"""Default minimum audit level of an annotation."""
REQUEST = "Request"

_log = logging.getLogger(__name__)
_FORMAT = "the right format is a DNS subdomain prefix and '/' and key name"


@dataclass(frozen=True, slots=True)
class Annotation:
    value: str
    level: str = METADATA


class Annotations:
    def __init__(self) -> None:
        self._annotations: dict[str, Annotation] = {}

    def add(self, key: str, value: str, level: str = METADATA) -> None:
        """Add an annotation. Invalid keys and conflicting values are logged and dropped, because annotations must not
        fail a request."""
        if why := _refusal(key):
            _log.warning("audit annotation %s is dropped: %s", quote(key), why)
            return
        annotation = Annotation(value, level)
        if self._annotations.setdefault(key, annotation) != annotation:
            _log.warning("audit annotation %s is already set and may not be overwritten", quote(key))

    def at(self, *levels: str) -> dict[str, str]:
        """Return the annotations of the given levels in insertion order."""
        return {key: each.value for key, each in self._annotations.items() if each.level in levels}


def _refusal(key: str) -> str:
    if key.count("/") != 1:
        return f"annotation key has invalid format, {_FORMAT}"
    return ", ".join(is_qualified_name(key))
