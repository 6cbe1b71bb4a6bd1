"""RESTMapper: kinds → resources, and short or partial names → resources.

After a failed lookup, discovery is refreshed once, because the name may belong to a new CRD.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupKind, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.status_error import PilothouseError


class NoMatch(PilothouseError, LookupError):
    """The server has no resource with the given name or kind.

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
    """Resource, kind and scope of a type."""

    resource: GroupVersionResource
    kind: GroupVersionKind
    namespaced: bool


class RESTMapper:
    """Finds the resource of a kind or of a plural, singular or short name. Discovery results are cached until `reset`.

    >>> from pilothouse.client import DiscoveryClient, RESTMapper
    >>> mapping = await RESTMapper(DiscoveryClient(client)).mapping_for("deploy")
    >>> mapping.kind.kind, mapping.resource.resource, mapping.namespaced
    ('Deployment', 'deployments', True)
    """

    def __init__(self, discovery: DiscoveryClient) -> None:
        self._discovery = discovery

    def reset(self) -> None:
        """Clear the cache, so that the next call asks the server."""
        self._discovery.invalidate()

    async def mapping(self, kind: GroupKind, version: str = "") -> RESTMapping:
        """Return the mapping of a kind in `version` (default: the server's preferred version). Raises NoMatch."""

        def matches(resource: APIResource) -> bool:
            return resource.kind.group_kind == kind and version in ("", resource.resource.version)

        candidates = await self._find(matches, f"no matches for kind {kind.kind!r} in group {kind.group!r}")
        return RESTMapping(candidates[0].resource, candidates[0].kind, candidates[0].namespaced)

    async def mapping_for(self, name: str, *, group: str | None = None, version: str = "") -> RESTMapping:
        """Return the mapping of a resource by its plural, singular or short name. Raises NoMatch.

        Full names take precedence over short names. Ties are resolved by the server's order of groups and versions; the
        core group comes first.
        """
        name = name.lower()

        def matches(entry: APIResource) -> bool:
            resource = entry.resource
            has_name = name in (resource.resource, entry.singular) or name in entry.short_names
            return has_name and group in (None, resource.group) and version in ("", resource.version)

        candidates = await self._find(matches, f"the server has no resource {name!r}")
        exact = [entry for entry in candidates if name in (entry.resource.resource, entry.singular)]
        best = (exact or candidates)[0]
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
            if matching := [entry for entry in resources if not entry.is_subresource and matches(entry)]:
                return matching
        raise NoMatch(missing)
