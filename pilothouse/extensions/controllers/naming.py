"""Names: a definition gets the names that it asks for, unless another one of its group has them already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pilothouse.extensions.controllers.definitions import Definitions
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.customresourcedefinitions.conditions import ESTABLISHED, NAMES_ACCEPTED
from pilothouse.machinery.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.errors import aggregate
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.validation.immutable import semantically_equal

_NO_CONFLICTS = Condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
_NOT_ACCEPTED = Condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
_INSTALLING = Condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")
_OF_RESOURCES, _OF_KINDS = ("plural", "singular"), ("kind", "listKind")


@dataclass(frozen=True, slots=True)
class Naming:
    """The names that a definition gets, and what there is to say about those that it does not get."""

    accepted: Json
    condition: Condition


class NamingController:
    def __init__(self, definitions: Definitions, writer: StatusWriter, requeue: Callable[[str], None]) -> None:
        self._definitions = definitions
        self._writer = writer
        self._requeue = requeue

    async def sync(self, name: str) -> None:
        definition = self._definitions.get(name)
        if definition is None:
            # Its names are free now: plural and group are in its own.
            self._requeue_group(name.partition(".")[2], name)
            return
        if semantically_equal(definition["spec"]["names"], accepted_names(definition)):
            return
        group = definition["spec"]["group"]
        naming = decide(definition, [d for d in self._definitions.of_group(group) if name_of(d) != name])
        same = semantically_equal(naming.accepted, accepted_names(definition))
        if same and naming.condition.is_said_by(find_condition(definition, NAMES_ACCEPTED)):
            return
        await self._writer.write(definition, lambda current: _record(current, naming))
        self._requeue_group(group, name)

    def _requeue_group(self, group: str, name: str) -> None:
        for other in self._definitions.of_group(group):
            if name_of(other) != name:
                self._requeue(name_of(other))


def accepted_names(definition: Json) -> Json:
    return (definition.get("status") or {}).get("acceptedNames") or {}


def decide(definition: Json, others: list[Json]) -> Naming:
    """`others` are the other definitions of the group. Of several conflicts the last one is told."""
    wanted, accepted = definition["spec"]["names"], dict(accepted_names(definition))
    taken = [accepted_names(other) for other in others]
    resources = {names.get(field) or "" for names in taken for field in _OF_RESOURCES}
    resources |= {short for names in taken for short in names.get("shortNames") or ()}
    kinds = {names.get(field) or "" for names in taken for field in _OF_KINDS}
    condition = _NO_CONFLICTS
    for field, used in (
        ("plural", resources),
        ("singular", resources),
        ("shortNames", resources),
        *((field, kinds) for field in _OF_KINDS),
    ):
        problems = _conflicts(wanted.get(field), accepted.get(field), used)
        if problems:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            condition = Condition(NAMES_ACCEPTED, "False", reason, aggregate(problems))
        else:
            _take(accepted, wanted, field)
    _take(accepted, wanted, "categories")
    return Naming(accepted, condition)


def _conflicts(wanted: str | list[str] | None, accepted: str | list[str] | None, used: set[str]) -> list[str]:
    own = accepted if isinstance(accepted, list) else [accepted or ""]
    names = wanted if isinstance(wanted, list) else [wanted or ""]
    return [f"{quote(name)} is already in use" for name in names if name and name not in own and name in used]


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
