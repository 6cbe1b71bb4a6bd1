"""The groups of a server and its delegates for discovery.

manager.put(documents)   a group was added or changed
manager.remove("g.io")   a group was removed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pilothouse.apiserver.discovery.groups import group_discovery, group_entry
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True, eq=False)
class GroupDocuments:
    """One group: `entry` is for the list of groups, `discovery` for the aggregated document."""

    name: str
    entry: Json
    discovery: Json

    @classmethod
    def of(cls, group: APIGroup) -> GroupDocuments:
        return cls(group.name, group_entry(group), group_discovery(group))


class GroupManager:
    """The server's own groups come first, in the order of addition; the delegate's groups follow."""

    def __init__(self, delegate: GroupManager | None = None) -> None:
        self._delegate = delegate
        self._groups: dict[str, GroupDocuments] = {}
        self._sources: list[Callable[[], Iterable[GroupDocuments]]] = []

    def put(self, documents: GroupDocuments) -> None:
        """Add or replace the group."""
        self._groups[documents.name] = documents

    def remove(self, name: str) -> None:
        """Remove the group; idempotent."""
        self._groups.pop(name, None)

    def add_source(self, source: Callable[[], Iterable[GroupDocuments]]) -> None:
        """Add a source of groups that is called for every request. An unchanged group must be the same object."""
        self._sources.append(source)

    def own(self) -> tuple[GroupDocuments, ...]:
        return (*self._groups.values(), *(group for source in self._sources for group in source()))

    def by_server(self) -> tuple[tuple[GroupDocuments, ...], ...]:
        """Return the groups of each server, in the order in which a request passes the servers."""
        return (self.own(), *(self._delegate.by_server() if self._delegate else ()))

    def groups(self) -> tuple[GroupDocuments, ...]:
        own = self.own()
        below = self._delegate.groups() if self._delegate else ()
        known = {group.name for group in own}
        return (*own, *(group for group in below if group.name not in known))
