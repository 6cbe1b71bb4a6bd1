"""The labels of a stored object, read from its bytes without parsing the rest, which is nearly all of it."""

from __future__ import annotations

import re

import orjson

_METADATA = b'"metadata":{'
_LABELS = b'"labels":'
_BEFORE_LABELS = re.compile(rb'(?:"[A-Za-z]++":(?:"[^"\\]*+"|[0-9]++),)*+"labels":(\{[^{}\\]*+\})')
"""From the start of the metadata: simple values, in any order, and then the labels, which hold no objects."""


def labels_in(stored: bytes, type_prefix: bytes) -> dict[str, str] | None:
    """Return the labels in the bytes of an object that begin with `type_prefix`; None when it takes a parser to say."""
    if not stored.startswith(_METADATA, len(type_prefix)) or not stored.startswith(type_prefix):
        return None
    found = _BEFORE_LABELS.match(stored, len(type_prefix) + len(_METADATA))
    if found is not None:
        labels: dict[str, str] = orjson.loads(found[1])
        return labels
    return {} if _LABELS not in stored else None
