"""Current and update revision of a StatefulSet."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.controllers.history.history import History
from pilothouse.controllers.history.revisions import holds_template_of, new_revision, next_number
from pilothouse.controllers.statefulset.members import Versions
from pilothouse.machinery.objects import Json, name_of


async def find_versions(history: History, stateful_set: Json, ordered: Sequence[Json]) -> tuple[Versions, int]:
    """Return the StatefulSet's versions and its collision count. `ordered` are the known revisions.

    A new template creates a revision; a reused template gets the highest number. Raises StatusError.
    """
    status = stateful_set.get("status") or {}
    collisions = int(status.get("collisionCount") or 0)
    equal = [revision for revision in ordered if holds_template_of(revision, stateful_set)]
    if not equal:
        new = new_revision(stateful_set, next_number(ordered), collisions)
        update, collisions = await history.create(stateful_set, new, collisions)
    elif equal[-1] is ordered[-1]:
        update = equal[-1]
    else:
        update = await history.renumber(equal[-1], next_number(ordered))
    named = (revision for revision in ordered if name_of(revision) == status.get("currentRevision"))
    return Versions(stateful_set, next(named, update), update), collisions
