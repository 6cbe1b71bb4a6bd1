"""The conflicts of an apply with other managers of fields, in upstream's words."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.apply.fieldset import Path, shown_path
from pilothouse.machinery.apply.managed import ManagerId
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class FieldManagerConflict:
    """A field that somebody else owns and that the apply would change."""

    manager: ManagerId
    path: Path

    @property
    def cause(self) -> Json:
        return {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {self.manager}",
            "field": shown_path(self.path),
        }


class Conflicts(Exception):
    def __init__(self, conflicts: Sequence[FieldManagerConflict]) -> None:
        self.conflicts = tuple(conflicts)
        super().__init__(_message(self.conflicts))

    @property
    def causes(self) -> list[Json]:
        return [conflict.cause for conflict in self.conflicts]


def _message(conflicts: Sequence[FieldManagerConflict]) -> str:
    if len(conflicts) == 1:
        conflict = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {conflict.manager}: {shown_path(conflict.path)}"
    lines = []
    by_manager: dict[ManagerId, list[FieldManagerConflict]] = {}
    for conflict in conflicts:
        by_manager.setdefault(conflict.manager, []).append(conflict)
    for manager in sorted(by_manager, key=lambda manager: manager.encoded):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {shown_path(conflict.path)}" for conflict in by_manager[manager]]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
