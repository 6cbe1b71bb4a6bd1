"""The groups that a server and those that it delegates to have, as discovery shows them.

manager.put(documents)   a group came or changed
manager.remove("g.io")   it went
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pilothouse.apiserver.discovery.groups import group_discovery, group_entry
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True, eq=False)
class GroupDocuments:
    """One group: `entry` as in the list of groups, `discovery` as in the aggregated document."""

    name: str
    entry: Json
    discovery: Json

    @classmethod
    def of(cls, group: APIGroup) -> GroupDocuments:
        return cls(group.name, group_entry(group), group_discovery(group))


class GroupManager:
    """A server's own groups come first, in the order in which they came; its delegate's follow."""

    def __init__(self, delegate: GroupManager | None = None) -> None:
        self._delegate = delegate
        self._groups: dict[str, GroupDocuments] = {}
        self._sources: list[Callable[[], Iterable[GroupDocuments]]] = []

    def put(self, documents: GroupDocuments) -> None:
        """Adds the group, or puts it in the place of the one with the same name."""
        self._groups[documents.name] = documents

    def remove(self, name: str) -> None:
        """One that is not there is no error."""
        self._groups.pop(name, None)

    def add_source(self, source: Callable[[], Iterable[GroupDocuments]]) -> None:
        """Groups that are asked for whenever somebody looks; as long as one has not changed it is the same object."""
        self._sources.append(source)

    def own(self) -> tuple[GroupDocuments, ...]:
        return (*self._groups.values(), *(group for source in self._sources for group in source()))

    def by_server(self) -> tuple[tuple[GroupDocuments, ...], ...]:
        """The groups of each server itself, in the order in which a request passes the servers."""
        return (self.own(), *(self._delegate.by_server() if self._delegate else ()))

    def groups(self) -> tuple[GroupDocuments, ...]:
        own = self.own()
        below = self._delegate.groups() if self._delegate else ()
        known = {group.name for group in own}
        return (*own, *(group for group in below if group.name not in known))
