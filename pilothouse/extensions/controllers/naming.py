"""The naming controller: accepts the names of a definition unless another definition of the group has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Set

from pilothouse.extensions.controllers.definitions import DefinitionInformer
from pilothouse.extensions.controllers.status_writer import StatusWriter
from pilothouse.extensions.controllers.taken_names import NamesOfOthers, TakenNames
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
        await self._write(definition, naming)
        self._requeue_waiting(group, name)

    async def _write(self, definition: Json, naming: Naming) -> None:
        """Write the decision, and record the accepted names at once: the next decision may precede the watch event."""
        based_on = 0

        def change(current: Json) -> None:
            nonlocal based_on
            based_on = int(resource_version_of(current))
            _record(current, naming)

        if await self._writer.write(definition, change):
            name, group = name_of(definition), definition["spec"]["group"]
            self._taken.record(name, group, naming.accepted, after=based_on)

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
    for field, used in (
        ("plural", taken.resources),
        ("singular", taken.resources),
        ("shortNames", taken.resources),
        ("kind", taken.kinds),
        ("listKind", taken.kinds),
    ):
        problems = _conflicts(wanted.get(field), accepted.get(field), used)
        if problems:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            condition = Condition(NAMES_ACCEPTED, "False", reason, aggregate(problems))
        else:
            _take(accepted, wanted, field)
    _take(accepted, wanted, "categories")
    return Naming(accepted, condition)


def _conflicts(wanted: str | list[str] | None, accepted: str | list[str] | None, used: Set[str]) -> list[str]:
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
