"""Correlation of new and old values for ratcheting: unchanged values are not rejected.

Fields correlate by name, items of map lists by key. Items of other lists do not correlate.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import orjson

from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.objects import deep_equal


class ComparisonTime:
    """Seconds spent comparing an object with its old state."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


class Link:
    """A value and its old value."""

    __slots__ = ("_by_keys", "_children", "_equal", "old", "schema", "time", "value")

    def __init__(self, value: Any, old: Any, schema: Structural, time: ComparisonTime | None = None) -> None:
        """`time`: shared by all links of an object."""
        self.time = time or ComparisonTime()
        self.value = value
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Link | None] = {}
        self._by_keys: dict[bytes, Any] | None = None
        self._equal: bool | None = None

    def key(self, name: str) -> Link | None:
        if name not in self._children:
            self._children[name] = self._link_field(name)
        return self._children[name]

    def index(self, position: int) -> Link | None:
        if position not in self._children:
            self._children[position] = self._link_item(position)
        return self._children[position]

    def is_unchanged(self) -> bool:
        start = perf_counter()
        try:
            return self._is_equal()
        finally:
            self.time.seconds += perf_counter() - start

    def _is_equal(self) -> bool:
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _link_field(self, name: str) -> Link | None:
        if not (isinstance(self.old, dict) and isinstance(self.value, dict)):
            return None
        schema = self.schema.of_field(name)
        if schema is None or name not in self.old or name not in self.value:
            return None
        return Link(self.value[name], self.old[name], schema, self.time)

    def _link_item(self, position: int) -> Link | None:
        if not (isinstance(self.old, list) and isinstance(self.value, list)) or self.schema.list_type != "map":
            return None
        if self._by_keys is None:
            found: dict[bytes, Any] = {}
            for item in self.old:
                if isinstance(item, dict):
                    found.setdefault(_keys_of(item, self.schema.map_keys), item)
            self._by_keys = found
        old = self._by_keys.get(_keys_of(self.value[position], self.schema.map_keys))
        items = self.schema.items
        return None if old is None or items is None else Link(self.value[position], old, items, self.time)

    def _compare(self) -> bool:
        """Compare deeply; items of map lists may be reordered."""
        if isinstance(self.value, dict) and isinstance(self.old, dict):
            links = [self.key(name) for name in self.value]
            return len(self.value) == len(self.old) and all(link is not None and link._is_equal() for link in links)
        if isinstance(self.value, list) and isinstance(self.old, list) and self.schema.list_type == "map":
            items = [self.index(position) for position in range(len(self.value))]
            return len(self.value) == len(self.old) and all(item is not None and item._is_equal() for item in items)
        return deep_equal(self.value, self.old)


def _keys_of(item: Any, keys: tuple[str, ...]) -> bytes:
    return orjson.dumps([item.get(key) if isinstance(item, dict) else None for key in keys])
