"""The naming controller: accepts the names of a definition unless another definition of the group has them.

TakenNames indexes the accepted names by group, so a decision does not compare with every definition of the group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import field

from pilothouse.extensions.controllers.definitions import DefinitionInformer, StatusWriter
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, NAMES_ACCEPTED
from pilothouse.kinds.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, resource_version_of
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.validation.immutable import semantically_equal

_NO_CONFLICTS = Condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
_NOT_ACCEPTED = Condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
_INSTALLING = Condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")


@dataclass(frozen=True, slots=True)
class Naming:
    """The accepted names of a definition, and the conditions about rejected names."""

    accepted: Json
    condition: Condition


class NamingController:
    def __init__(self, definitions: DefinitionInformer, writer: StatusWriter, requeue: Callable[[str], None]) -> None:
        self._definitions = definitions
        self._writer = writer
        self._requeue = requeue
        self._taken = TakenNames()
        self._waiting: defaultdict[str, set[str]] = defaultdict(set)
        """Group → definitions with rejected names; only these need another decision when names become free."""
        definitions.listen(self._changed)

    def _changed(self, definitions: list[Json]) -> None:
        """Record the accepted names. All existing names must be known before the first decision."""
        for name in map(name_of, definitions):
            current = self._definitions.get(name)
            if current is None:
                self._taken.forget(name)
            else:
                # The names are current as of this revision, so "after the previous revision" is exact.
                before = int(resource_version_of(current)) - 1
                self._taken.record(name, current["spec"]["group"], accepted_names(current), after=before)

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None:
            # The deleted definition frees its names. Its own name contains plural and group.
            self._requeue_waiting(name.partition(".")[2], name)
            return
        group, wanted = definition["spec"]["group"], definition["spec"]["names"]
        self._waiting[group].discard(name)
        if semantically_equal(wanted, accepted_names(definition)):
            return
        naming = decide(definition, self._taken.by_others(name, group, wanted))
        if naming.condition is not _NO_CONFLICTS:
            self._waiting[group].add(name)
        same = semantically_equal(naming.accepted, accepted_names(definition))
        if same and naming.condition.is_same_as(find_condition(definition, NAMES_ACCEPTED)):
            return
        based_on = 0

        def change(current: Json) -> None:
            nonlocal based_on
            based_on = int(resource_version_of(current))
            _record(current, naming)

        if await self._writer.write(definition, change):
            # Record the accepted names at once: the next decision may precede the watch event.
            self._taken.record(name, group, naming.accepted, after=based_on)
        self._requeue_waiting(group, name)

    def _requeue_waiting(self, group: str, name: str) -> None:
        """Requeue definitions that may get their names now."""
        for other in self._waiting.pop(group, set()) - {name}:
            self._requeue(other)


def accepted_names(definition: Json) -> Json:
    return (definition.get("status") or {}).get("acceptedNames") or {}


def decide(definition: Json, taken: NamesOfOthers) -> Naming:
    """Decide on the names of a definition. Of several conflicts, the last is reported."""
    wanted, accepted = definition["spec"]["names"], dict(accepted_names(definition))
    condition = _NO_CONFLICTS
    for name, used in (
        ("plural", taken.resources),
        ("singular", taken.resources),
        ("shortNames", taken.resources),
        ("kind", taken.kinds),
        ("listKind", taken.kinds),
    ):
        own, names = _as_list(accepted.get(name)), _as_list(wanted.get(name))
        problems = [
            f"{quote(value)} is already in use" for value in names if value and value not in own and value in used
        ]
        if problems:
            reason = f"{name[0].upper()}{name[1:]}Conflict"
            condition = Condition(NAMES_ACCEPTED, "False", reason, aggregate(problems))
        else:
            _take(accepted, wanted, name)
    _take(accepted, wanted, "categories")
    return Naming(accepted, condition)


def _as_list(names: str | list[str] | None) -> list[str]:
    return names if isinstance(names, list) else [names or ""]


def _take(accepted: Json, wanted: Json, field: str) -> None:
    if wanted.get(field):
        accepted[field] = wanted[field]
    else:
        accepted.pop(field, None)


def _record(current: Json, naming: Naming) -> None:
    current["status"]["acceptedNames"] = naming.accepted
    set_condition(current, naming.condition)
    if is_true(current, ESTABLISHED):
        return
    if naming.condition is _NO_CONFLICTS:
        set_condition(current, _INSTALLING)
    elif find_condition(current, ESTABLISHED) is None:
        set_condition(current, _NOT_ACCEPTED)


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
    """Name → definitions with the name."""
    kinds: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


class TakenNames:
    def __init__(self) -> None:
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._holdings: dict[str, _Holding] = {}

    def record(self, definition: str, group: str, accepted: Json, *, after: int) -> None:
        """Record the names of a definition as of a revision later than `after`. Newer records win."""
        holding = self._holdings.get(definition)
        if holding is not None and holding.revision > after:
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
        names = self._groups.get(group)
        if names is None:
            return NamesOfOthers()
        return NamesOfOthers(
            frozenset(n for n in _names(wanted, _OF_RESOURCES) if names.resources.get(n, set()) - {definition}),
            frozenset(n for n in _names(wanted, _OF_KINDS) if names.kinds.get(n, set()) - {definition}),
        )


def _names(names: Json, fields: Iterable[str]) -> set[str]:
    return {name for field in fields for name in _as_list(names.get(field)) if name}


def _drop(definition: str, owners: dict[str, set[str]], names: Iterable[str]) -> None:
    for name in names:
        owners[name].discard(definition)
        if not owners[name]:
            del owners[name]
