"""The resources that the collector works with: what can be deleted, listed and watched, and how to reach each kind."""

from __future__ import annotations

from dataclasses import field

from pilothouse.client.discovery import APIResource, ServerResources
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource

IGNORED = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
"""Nothing owns them or is owned by them, and there are many."""

_VERBS = ("delete", "list", "watch")


class NoMapping(Exception):
    """Nothing of that kind is served: it may be not yet, no longer, or never."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"unable to get REST mapping for {api_version}/{kind}.")


@dataclass(frozen=True, slots=True)
class KindMapping:
    resource: GroupVersionResource
    namespaced: bool

    def namespace(self, namespace: str) -> str:
        return namespace if self.namespaced else ""


@dataclass(slots=True)
class KindMappings:
    """The resources by which objects of a kind are reached, as of the last discovery."""

    _found: dict[tuple[str, str], KindMapping] = field(default_factory=dict)

    def replace(self, found: ServerResources) -> None:
        """Kinds of groups that can not be read at the moment stay known."""
        kept = {key: value for key, value in self._found.items() if value.resource.group_version in found.failed}
        self._found = kept
        for each in found.resources:
            if not each.is_subresource:
                key = (str(each.resource.group_version), each.kind.kind)
                self._found.setdefault(key, KindMapping(each.resource, each.namespaced))

    def find(self, api_version: str, kind: str) -> KindMapping:
        """Raises NoMapping."""
        found = self._found.get((api_version, kind))
        if found is None:
            raise NoMapping(api_version, kind)
        return found


def deletable(found: ServerResources) -> dict[GroupVersionResource, GroupVersionKind]:
    """Return the resources that can be collected, in their preferred versions, with the kinds of their objects."""
    return {each.resource: _kind(each) for each in found.preferred() if _is_deletable(each)}


def _is_deletable(each: APIResource) -> bool:
    ignored = each.is_subresource or each.resource.group_resource in IGNORED
    return not ignored and all(verb in each.verbs for verb in _VERBS)


def _kind(each: APIResource) -> GroupVersionKind:
    """Owner references name the version under which the resource is served."""
    gv = GroupVersion(each.resource.group, each.resource.version)
    return GroupVersionKind(gv.group, gv.version, each.kind.kind)
