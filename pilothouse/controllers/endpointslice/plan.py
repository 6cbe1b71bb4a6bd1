"""Plans: minimal writes that bring the slices of one port set to the desired endpoints.

1. Slices keep endpoints that are still desired; slices left empty are deleted.
2. Changed slices are filled up, fullest first.
3. Remaining endpoints go into one unchanged slice if they fit, else into new slices.

    limit 3, slices [a b c] [d e], desired a b d e f g:
    c is removed, so f takes its place; g remains and fits into [d e] → [a b f] [d e g]

Endpoints never move between slices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from pilothouse.controllers.endpointslice.endpoint import EndpointKey, endpoint_key, is_same_beyond_key
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, name_of


@dataclass(slots=True)
class Plan:
    """Slices to create, update and delete. New slices have no name; slices to update are copies, so the cache is
    unchanged."""

    create: list[Json] = field(default_factory=list)
    update: list[Json] = field(default_factory=list)
    delete: list[Json] = field(default_factory=list)
    added: int = 0
    removed: int = 0

    def extend(self, other: Plan) -> None:
        self.create += other.create
        self.update += other.update
        self.delete += other.delete
        self.added += other.added
        self.removed += other.removed

    def unchanged(self, existing: list[Json]) -> list[Json]:
        changed = {name_of(endpoint_slice) for endpoint_slice in (*self.update, *self.delete)}
        return [endpoint_slice for endpoint_slice in existing if name_of(endpoint_slice) not in changed]


class GroupPlanner:
    """Plans slices of one port set and address type."""

    def __init__(self, *, limit: int, labels: dict[str, str], new_slice: Callable[[], Json]) -> None:
        self._limit = limit
        self._labels = labels
        self._new_slice = new_slice

    def plan(self, existing: list[Json], desired: Mapping[EndpointKey, Json]) -> Plan:
        plan, unchanged, remaining = Plan(), dict[str, Json](), dict(desired)
        for endpoint_slice in existing:
            old = endpoint_slice.get("endpoints") or []
            pairs = [(endpoint, remaining.pop(endpoint_key(endpoint), None)) for endpoint in old]
            kept = [endpoint for _, endpoint in pairs if endpoint is not None]
            plan.removed += len(old) - len(kept)
            same = len(kept) == len(old) and all(new and is_same_beyond_key(new, before) for before, new in pairs)
            if not same and not kept:
                plan.delete.append(endpoint_slice)
            elif same and (metadata(endpoint_slice).get("labels") or {}) == self._labels:
                unchanged[name_of(endpoint_slice)] = endpoint_slice
            else:
                plan.update.append(self._changed(endpoint_slice, old if same else kept))
        plan.added = len(remaining)
        for endpoint_slice in sorted(plan.update, key=lambda endpoint_slice: -len(endpoint_slice["endpoints"])):
            self._fill(endpoint_slice, remaining)
        while remaining:
            fitting = self._fullest_with_room_for(len(remaining), unchanged)
            if fitting is None:
                plan.create.append(self._new_slice())
                self._fill(plan.create[-1], remaining)
            else:
                chosen = unchanged.pop(name_of(fitting))
                plan.update.append(self._changed(chosen, chosen.get("endpoints") or []))
                self._fill(plan.update[-1], remaining)
        return plan

    def _changed(self, endpoint_slice: Json, endpoints: list[Json]) -> Json:
        return {
            **endpoint_slice,
            "metadata": metadata(endpoint_slice) | {"labels": self._labels},
            "endpoints": [*endpoints],
        }

    def _fill(self, endpoint_slice: Json, remaining: dict[EndpointKey, Json]) -> None:
        while remaining and len(endpoint_slice["endpoints"]) < self._limit:
            endpoint_slice["endpoints"].append(remaining.pop(next(iter(remaining))))

    def _fullest_with_room_for(self, number: int, unchanged: dict[str, Json]) -> Json | None:
        fitting = [
            endpoint_slice
            for endpoint_slice in unchanged.values()
            if len(endpoint_slice.get("endpoints") or ()) + number <= self._limit
        ]
        return max(fitting, key=lambda endpoint_slice: len(endpoint_slice.get("endpoints") or ()), default=None)
