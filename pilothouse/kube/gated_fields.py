"""Fields that a feature gate turns on: while it is off they are dropped, unless the stored object has them already.

A path leads through objects by their names, through lists by `name[]` and through the values of maps by `name{}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class GatedFields:
    """Fields that come and go together."""

    gate: str
    paths: tuple[str, ...]

    def in_use(self, obj: Json) -> bool:
        return any(holder.get(name) not in (None, "", []) for holder, name in self._places(obj))

    def drop(self, obj: Json) -> None:
        for holder, name in self._places(obj):
            holder.pop(name, None)

    def _places(self, obj: Json) -> Iterator[tuple[Json, str]]:
        for path in self.paths:
            *steps, name = path.split(".")
            yield from ((holder, name) for holder in _walk([obj], steps))


def gated(gate: str, *paths: str) -> GatedFields:
    return GatedFields(gate, paths)


def drop_disabled(obj: Json, old: Json | None, fields: Iterable[GatedFields]) -> None:
    """Drop the fields whose gates are off from an object, if `old`, the stored one, does not use them."""
    for each in fields:
        if not enabled(each.gate) and not (old and each.in_use(old)):
            each.drop(obj)


def _walk(holders: Iterable[Json], steps: Sequence[str]) -> Iterable[Json]:
    for step in steps:
        holders = list(_next(holders, step))
    return holders


def _next(holders: Iterable[Json], step: str) -> Iterator[Json]:
    name = step.rstrip("[]{}")
    for holder in holders:
        value = holder.get(name)
        if not value:
            continue
        if step.endswith("[]"):
            yield from value
        elif step.endswith("{}"):
            yield from value.values()
        else:
            yield value
