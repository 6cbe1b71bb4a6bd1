"""Merging of tolerations in linear time, without redundant entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import TypeAlias

import orjson

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.objects import Json

_Scope: TypeAlias = tuple[str | None, str, str | None]
"""(key, effect, value). None matches every key or value; an empty effect matches every effect."""


class TolerationIndex:
    """An index of tolerations that finds covering tolerations."""

    def __init__(self, tolerations: Iterable[Json] = ()) -> None:
        self._known: set[bytes] = set()
        self._longest: dict[_Scope, float] = {}  # longest toleration seconds by scope
        for toleration in tolerations:
            self.add(toleration)

    def add(self, wide: Json) -> None:
        checkpoint()
        self._known.add(_identity(wide))
        exists = wide.get("operator") == "Exists"
        key = None if exists and not wide.get("key") else _text(wide, "key")
        scope = (key, _text(wide, "effect"), None if exists else _text(wide, "value"))
        self._longest[scope] = max(self._longest.get(scope, -inf), _seconds(wide))

    def covers(self, narrow: Json) -> bool:
        if _identity(narrow) in self._known:
            return True
        return any(
            scope in self._longest and (scope[1] != "NoExecute" or _seconds(narrow) <= self._longest[scope])
            for scope in _covering_scopes(narrow)
        )


def merge_tolerations(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    """Return both lists without covered tolerations. Of equal tolerations, the first is kept."""
    every = list({_identity(toleration): toleration for toleration in (*first, *second)}.values())
    following, rest = TolerationIndex(), []
    for toleration in reversed(every):
        if not following.covers(toleration):
            rest.append(toleration)
        following.add(toleration)
    before, merged = TolerationIndex(), []
    for toleration in reversed(rest):
        if not before.covers(toleration):
            merged.append(toleration)
            before.add(toleration)
    return merged


def all_covered(tolerations: Iterable[Json], allowed: Iterable[Json]) -> bool:
    """Report whether allowed tolerations cover all tolerations."""
    index = TolerationIndex(allowed)
    return all(index.covers(toleration) for toleration in tolerations)


def covers(wide: Json, narrow: Json) -> bool:
    """Report whether `wide` tolerates everything that `narrow` tolerates."""
    return TolerationIndex([wide]).covers(narrow)


def _covering_scopes(narrow: Json) -> Iterator[_Scope]:
    values = (None, _text(narrow, "value")) if narrow.get("operator") == "Equal" else (None,)
    for effect in {"", _text(narrow, "effect")}:
        for value in values:
            yield _text(narrow, "key"), effect, value
        yield None, effect, None


def _identity(toleration: Json) -> bytes:
    return orjson.dumps(toleration, option=orjson.OPT_SORT_KEYS)


def _text(toleration: Json, field: str) -> str:
    return str(toleration.get(field) or "")


def _seconds(toleration: Json) -> float:
    """Without a limit a taint is tolerated for ever."""
    limit = toleration.get("tolerationSeconds")
    return inf if limit is None else float(limit)
