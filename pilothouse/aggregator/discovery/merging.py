"""The merged discovery document: the source of each group version, and the order of groups and versions.

If several servers have a group version, the server that receives its requests wins: aggregated servers before the
aggregator, before kube, before extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pilothouse.aggregator.api_services_to_register import APIServicePriority, Priorities
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.apiserver.discovery.manager import GroupDocuments
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.versions import PreferenceKey, preference

CUSTOM_RESOURCES = APIServicePriority(1000, 100)
"""Priority of versions without a known priority."""

_ABOVE_ALL = APIServicePriority(20001, 0)
"""First place for apiregistration.k8s.io: the priority of an APIService is at most 20000."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedVersion:
    """A version with its priority and its discovery entry."""

    group_version: GroupVersion
    priority: APIServicePriority
    discovery: Json

    @property
    def order(self) -> tuple[int, PreferenceKey]:
        return -self.priority.version, preference(self.group_version.version)


def local_versions(servers: Iterable[Sequence[GroupDocuments]], priorities: Priorities) -> Iterator[RankedVersion]:
    """Yield the versions of the local servers, given in the order of delegation."""
    for server in servers:
        for group in server:
            for version in group.discovery["versions"]:
                group_version = GroupVersion(group.name, version["version"])
                yield RankedVersion(group_version, _local_priority(group_version, priorities), version)


def _local_priority(group_version: GroupVersion, priorities: Priorities) -> APIServicePriority:
    if group_version == GROUP_VERSION:
        return _ABOVE_ALL
    return priorities.get(group_version) or CUSTOM_RESOURCES


def merged_groups(versions: Iterable[RankedVersion]) -> list[Json]:
    """Return the items of the document. The first of equal group versions wins."""
    groups: dict[str, dict[str, RankedVersion]] = {}
    for each in versions:
        groups.setdefault(each.group_version.group, {}).setdefault(each.group_version.version, each)
    return [_group(name, groups[name]) for name in sorted(groups, key=lambda name: _order(name, groups[name]))]


def _order(name: str, versions: Mapping[str, RankedVersion]) -> tuple[int, str]:
    return -max(each.priority.group for each in versions.values()), name


def _group(name: str, versions: Mapping[str, RankedVersion]) -> Json:
    ordered = sorted(versions.values(), key=lambda each: each.order)
    return {"metadata": {"name": name}, "versions": [each.discovery for each in ordered]}
