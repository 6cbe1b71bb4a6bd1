"""Fields behind feature gates: dropped while the gate is off, unless the stored object has them.

Paths use `name` for objects, `name[]` for lists and `name{}` for map values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class GatedFields:
    """Fields of one feature."""

    gate: str
    places: tuple[tuple[tuple[str, ...], str], ...]
    """Path to the parents of each field, and the field's name."""

    def in_use(self, obj: Json) -> bool:
        return any(holder.get(name) not in (None, "", []) for holder, name in self._held(obj))

    def drop(self, obj: Json) -> None:
        for holder, name in self._held(obj):
            holder.pop(name, None)

    def _held(self, obj: Json) -> Iterator[tuple[Json, str]]:
        for steps, name in self.places:
            holders = [obj]
            for step in steps:
                if not holders:
                    break
                holders = _next(holders, step)
            yield from [(holder, name) for holder in holders]


def gated(gate: str, *paths: str) -> GatedFields:
    split = (path.split(".") for path in paths)
    return GatedFields(gate, tuple((tuple(steps), name) for *steps, name in split))


def drop_disabled(obj: Json, old: Json | None, fields: Iterable[GatedFields]) -> None:
    """Drop the fields of disabled gates, unless `old`, the stored object, uses them."""
    for field in fields:
        if not enabled(field.gate) and not (old and field.in_use(old)):
            field.drop(obj)


def _next(holders: list[Json], step: str) -> list[Json]:
    name, kind = step.rstrip("[]{}"), step[-2:]
    values = [value for holder in holders if (value := holder.get(name))]
    if kind == "[]":
        return [item for value in values for item in value]
    return [item for value in values for item in value.values()] if kind == "{}" else values
