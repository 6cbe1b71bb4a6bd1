"""Index of accepted names by group, which spares a comparison with every definition of the group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_OF_RESOURCES, _OF_KINDS = ("plural", "singular", "shortNames"), ("kind", "listKind")


@dataclass(frozen=True, slots=True)
class NamesOfOthers:
    """Names accepted for other definitions."""

    resources: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Holding:
    group: str
    names: Json
    revision: int
    """The names are valid after this revision."""


@dataclass(slots=True)
class _Group:
    resources: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Name → definitions that have the name."""
    kinds: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


class TakenNames:
    def __init__(self) -> None:
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._holdings: dict[str, _Holding] = {}

    def record(self, definition: str, group: str, accepted: Json, *, after: int) -> None:
        """Record the names of a definition as of a revision later than `after`. Newer records win."""
        known = self._holdings.get(definition)
        if known is not None and known.revision > after:
            return
        self.forget(definition)
        self._holdings[definition] = _Holding(group, accepted, after)
        for name in _names(accepted, _OF_RESOURCES):
            self._groups[group].resources[name].add(definition)
        for name in _names(accepted, _OF_KINDS):
            self._groups[group].kinds[name].add(definition)

    def forget(self, definition: str) -> None:
        """Drop the names of a definition; a no-op if absent."""
        held = self._holdings.pop(definition, None)
        if held is None:
            return
        group = self._groups[held.group]
        _drop(definition, group.resources, _names(held.names, _OF_RESOURCES))
        _drop(definition, group.kinds, _names(held.names, _OF_KINDS))
        if not group.resources and not group.kinds:
            del self._groups[held.group]

    def by_others(self, definition: str, group: str, wanted: Json) -> NamesOfOthers:
        """Return the wanted names that other definitions have."""
        found = self._groups.get(group)
        if found is None:
            return NamesOfOthers()
        return NamesOfOthers(
            frozenset(n for n in _names(wanted, _OF_RESOURCES) if found.resources.get(n, set()) - {definition}),
            frozenset(n for n in _names(wanted, _OF_KINDS) if found.kinds.get(n, set()) - {definition}),
        )


def _names(names: Json, fields: Iterable[str]) -> set[str]:
    values = [names.get(each) or "" for each in fields]
    return {name for value in values for name in (value if isinstance(value, list) else [value]) if name}


def _drop(definition: str, owners: dict[str, set[str]], names: Iterable[str]) -> None:
    for name in names:
        owners[name].discard(definition)
        if not owners[name]:
            del owners[name]
