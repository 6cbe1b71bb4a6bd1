"""From what people write to what the API wants: kinds to resources, and partial or short names to full ones.

A name that is not known is looked up once more after asking the server again, since it may be new (a CRD).
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupKind, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.status_error import PilothouseError


class NoMatch(PilothouseError, LookupError):
    """The server has nothing of that name.

    >>> from pilothouse.client import DiscoveryClient, RESTMapper
    >>> from pilothouse.errors import NoMatch
    >>> try:
    ...     await RESTMapper(DiscoveryClient(client)).mapping_for("unicorns")
    ... except NoMatch as error:
    ...     print(error)
    the server has no resource 'unicorns'
    """


@dataclass(frozen=True, slots=True)
class RESTMapping:
    """How to reach the objects of a kind."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool


class RESTMapper:
    """Finds the resource of a kind, or of any name by which people call it. What the server said is kept until `reset`.

    >>> from pilothouse.client import DiscoveryClient, RESTMapper
    >>> mapping = await RESTMapper(DiscoveryClient(client)).mapping_for("deploy")
    >>> mapping.kind.kind, mapping.resource.resource, mapping.namespaced
    ('Deployment', 'deployments', True)
    """

    def __init__(self, discovery: DiscoveryClient) -> None:
        self._discovery = discovery

    def reset(self) -> None:
        """Asks the server again when next needed."""
        self._discovery.invalidate()

    async def mapping(self, kind: GroupKind, version: str = "") -> RESTMapping:
        """The mapping of a kind, in the given version or the one that the server prefers. Raises NoMatch."""

        def matches(found: APIResource) -> bool:
            return found.kind.group_kind == kind and version in ("", found.resource.version)

        found = await self._find(matches, f"no matches for kind {kind.kind!r} in group {kind.group!r}")
        return RESTMapping(found[0].resource, found[0].kind, found[0].namespaced)

    async def mapping_for(self, name: str, *, group: str | None = None, version: str = "") -> RESTMapping:
        """The mapping of a resource by its plural, singular or short name.

        A full name goes before a short one, and then the order in which the server lists its groups and versions
        decides, which has the core group first. Raises NoMatch.
        """
        name = name.lower()

        def matches(found: APIResource) -> bool:
            return group in (None, found.resource.group) and version in ("", found.resource.version) and named(found)

        def named(found: APIResource) -> bool:
            return name in (found.resource.resource, found.singular) or name in found.short_names

        found = await self._find(matches, f"the server has no resource {name!r}")
        exact = [entry for entry in found if name in (entry.resource.resource, entry.singular)]
        best = (exact or found)[0]
        return RESTMapping(best.resource, best.kind, best.namespaced)

    async def category(self, name: str) -> list[GroupVersionResource]:
        """Return the resources of a category such as "all", each in its preferred version."""
        resources = await self._discovery.server_resources()
        return [entry.resource for entry in resources.preferred() if name in entry.categories]

    async def _find(self, matches: Callable[[APIResource], bool], missing: str) -> list[APIResource]:
        for attempt in range(2):
            if attempt:
                self.reset()
            resources = (await self._discovery.server_resources()).resources
            if found := [entry for entry in resources if not entry.is_subresource and matches(entry)]:
                return found
        raise NoMatch(missing)
