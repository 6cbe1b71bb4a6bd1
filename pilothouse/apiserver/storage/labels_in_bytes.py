"""The labels of a stored object, read from its bytes without parsing the rest, which is nearly all of it.

Before its labels the metadata of an object has simple values only, so the first brace in it is that of the labels:

    {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"…","labels":{"app":"web"},"annotations":{…
"""

from __future__ import annotations

import orjson

_METADATA = b'"metadata":{'
_LABELS = b'"labels":'


def labels_in(stored: bytes, type_prefix: bytes) -> dict[str, str] | None:
    """Return the labels in the bytes of an object that begin with `type_prefix`; None when it takes a parser to say."""
    start = len(type_prefix) + len(_METADATA)
    if not stored.startswith(_METADATA, len(type_prefix)) or not stored.startswith(type_prefix):
        return None
    first = stored.find(b"{", start)
    # A brace in a text would not stand behind `":`, and one that comes after the metadata stands behind a closing one.
    if stored[first - len(_LABELS) : first] != _LABELS or stored.find(b"}", start, first) >= 0:
        return {} if _LABELS not in stored else None
    try:
        labels: dict[str, str] = orjson.loads(stored[first : stored.find(b"}", first) + 1])
    except orjson.JSONDecodeError:  # not labels as any server stores them
        return None
    return labels
