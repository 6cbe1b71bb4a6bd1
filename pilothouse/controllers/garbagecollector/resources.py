"""Resources known to the collector: deletable resources, and the mapping from kinds."""

from __future__ import annotations

from dataclasses import field

from pilothouse.client.discovery import APIResource, ServerResources
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource

IGNORED = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})
"""Ignored resources: frequent, and without ownership."""

_VERBS = ("delete", "list", "watch")


class NoMapping(Exception):
    """The kind is not served: not yet, no longer, or never."""

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
    """Mapping from kind to resource, as of the last discovery."""

    _found: dict[tuple[str, str], KindMapping] = field(default_factory=dict)

    def replace(self, found: ServerResources) -> None:
        """Replace the mappings; kinds of groups that failed discovery are kept."""
        kept = {key: value for key, value in self._found.items() if value.resource.group_version in found.failed}
        self._found = kept
        for each in found.resources:
            if not each.is_subresource:
                key = (str(each.resource.group_version), each.kind.kind)
                self._found.setdefault(key, KindMapping(each.resource, each.namespaced))

    def find(self, api_version: str, kind: str) -> KindMapping:
        """Return the mapping. Raises NoMapping."""
        found = self._found.get((api_version, kind))
        if found is None:
            raise NoMapping(api_version, kind)
        return found


def deletable(found: ServerResources) -> dict[GroupVersionResource, GroupVersionKind]:
    """Return the collectable resources in preferred versions, with their kinds."""
    return {each.resource: _kind(each) for each in found.preferred() if _is_deletable(each)}


def _is_deletable(each: APIResource) -> bool:
    ignored = each.is_subresource or each.resource.group_resource in IGNORED
    return not ignored and all(verb in each.verbs for verb in _VERBS)


def _kind(each: APIResource) -> GroupVersionKind:
    """Return the kind in the served version, as owner references name it."""
    gv = GroupVersion(each.resource.group, each.resource.version)
    return GroupVersionKind(gv.group, gv.version, each.kind.kind)
