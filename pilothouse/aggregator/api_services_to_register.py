"""The APIServices of what the servers below serve themselves, found in the paths that they list."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from pilothouse.aggregator.apiservice.order import api_service_name
from pilothouse.aggregator.apiservice.strategy import API_SERVICES
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class APIServicePriority:
    """The group's place among groups, and the version's within its group; what is greater comes first."""

    group: int
    version: int


_log = logging.getLogger(__name__)

Priorities: TypeAlias = Mapping[GroupVersion, APIServicePriority]


def api_services_to_register(listed_paths: Iterable[str], priorities: Priorities) -> Iterator[Json]:
    """A group version without a priority gets none: it would stay for ever if it were a custom resource's."""
    for path in listed_paths:
        group_version = _group_version_at(path)
        if group_version is None:
            continue
        if (priority := priorities.get(group_version)) is None:
            _log.info("Skipping APIService creation for %s", group_version)
        else:
            yield make_api_service(group_version, priority)


def make_api_service(group_version: GroupVersion, priority: APIServicePriority) -> Json:
    group = {"group": group_version.group} if group_version.group else {}
    return {
        "kind": API_SERVICES.kind.kind,
        "apiVersion": API_SERVICES.kind.api_version,
        "metadata": {"name": api_service_name(group_version)},
        "spec": {
            **group,
            "version": group_version.version,
            "groupPriorityMinimum": priority.group,
            "versionPriority": priority.version,
        },
    }


def _group_version_at(path: str) -> GroupVersion | None:
    match path.split("/"):
        case ["", "api", "v1"]:
            return GroupVersion("", "v1")
        case ["", "apis", group, version]:
            return GroupVersion(group, version)
    return None
