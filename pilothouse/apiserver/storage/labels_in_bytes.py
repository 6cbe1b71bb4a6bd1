"""Labels of a stored object, extracted without parsing the whole object.

The metadata before the labels has scalar values only, so its first brace belongs to the labels:

    {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"…","labels":{"app":"web"},"annotations":{…
"""

from __future__ import annotations

import orjson

_METADATA = b'"metadata":{'
_LABELS = b'"labels":'


def labels_in(stored: bytes, type_prefix: bytes) -> dict[str, str] | None:
    """Return the labels of an object that begins with `type_prefix`; None if parsing is required."""
    start = len(type_prefix) + len(_METADATA)
    if not stored.startswith(_METADATA, len(type_prefix)) or not stored.startswith(type_prefix):
        return None
    first = stored.find(b"{", start)
    # A brace within a string does not follow `":`, and a brace behind the metadata follows a closing one.
    if stored[first - len(_LABELS) : first] != _LABELS or stored.find(b"}", start, first) >= 0:
        return {} if _LABELS not in stored else None
    try:
        labels: dict[str, str] = orjson.loads(stored[first : stored.find(b"}", first) + 1])
    except orjson.JSONDecodeError:  # not the form that servers store
        return None
    return labels
