"""Objects decoded from repeated bodies: a controller that creates replicas sends the same bytes again and again.

From its second arrival on, a body costs one copy of the decoded object instead of decoding, defaulting and field
management. All endpoints of a process share one bounded cache.
"""

from __future__ import annotations

from collections.abc import Hashable

import orjson

from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now

_LARGEST = 16 << 10
"""Maximum size of a remembered body in bytes."""
_ARRIVED_ONCE = b""

_objects: BoundedCache[Hashable, bytes] = BoundedCache(entries=1024, total_bytes=4 << 20)
"""Body with its circumstances → the object as JSON; _ARRIVED_ONCE before the second arrival."""


class RepeatedBodies:
    """The bodies of one endpoint. `circumstances` are all other inputs of the decoded object."""

    def __init__(self) -> None:
        self._endpoint = object()

    def recall(self, body: bytes, *circumstances: str) -> Json | None:
        """Return a new copy of the object, as if decoded at this moment."""
        if len(body) > _LARGEST:
            return None
        text = _objects.get((self._endpoint, body, circumstances))
        if not text:
            return None
        obj: Json = orjson.loads(text)
        obj["metadata"]["managedFields"][0]["time"] = now()
        return obj

    def remember(self, obj: Json, began: str, body: bytes, *circumstances: str) -> None:
        """Remember the object of a body that arrived at least twice. `began` is the time before decoding.

        `obj` must be equal to its JSON form and have one manager. An object with another field that contains the
        current time is not remembered.
        """
        if len(body) > _LARGEST:
            return
        key = (self._endpoint, body, circumstances)
        if _objects.get(key) is None:
            _objects.put(key, _ARRIVED_ONCE, size=len(body))
            return
        managers: list[Json] = obj["metadata"].get("managedFields") or []
        if len(managers) != 1 or "time" not in managers[0]:
            return
        timeless = [{**managers[0], "time": ""}]
        text = orjson.dumps({**obj, "metadata": {**obj["metadata"], "managedFields": timeless}})
        if began.encode() not in text and now().encode() not in text:
            _objects.put(key, text, size=len(body) + len(text))
