"""Lists in which the order of the items says nothing: those that a schema calls sets, and maps by some of their fields.

SetList([1, 2]) == [2, 1]                        SetList([1, 2]) + [2, 3] is SetList([1, 2, 3])
MapList([{k: a, n: 1}], keys=(k,)) + [{k: a, n: 2}, {k: b}] is MapList([{k: a, n: 2}, {k: b}], keys=(k,))

As upstream has it, the left operand decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import orjson

from pilothouse.machinery.cel.interpreter.values import equal


class UnorderedList(list[Any]):
    """An item is told from the others by its identity."""

    cel_type = "list"

    def identity(self, item: Any) -> Hashable:
        raise NotImplementedError

    def equals(self, other: list[Any]) -> bool:
        if len(self) != len(other):
            return False
        own = {self.identity(item): item for item in self}
        found = [(self.identity(item), item) for item in other]
        return all(key in own and equal(own[key], item) for key, item in found)

    def plus(self, other: list[Any]) -> list[Any]:
        """Items with the same identity stay in their places and become those of the other."""
        merged = {self.identity(item): item for item in (*self, *other)}
        return list(merged.values())


class SetList(UnorderedList):
    def identity(self, item: Any) -> Hashable:
        """True is not 1, though Python thinks so."""
        return _scalar(item)

    def plus(self, other: list[Any]) -> SetList:
        return SetList(super().plus(other))


class MapList(UnorderedList):
    def __init__(self, items: Iterable[Any], *, keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self._keys = keys

    def identity(self, item: Any) -> Hashable:
        return tuple(_scalar(item.get(key)) if isinstance(item, dict) else None for key in self._keys)

    def plus(self, other: list[Any]) -> MapList:
        return MapList(super().plus(other), keys=self._keys)


def _scalar(value: Any) -> Hashable:
    """Return a key for an item: an item that is no scalar, which upstream does not expect, is known by all of its
    content.
    """
    if isinstance(value, list | dict):
        return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS)
    return (type(value), value)
