"""APIServices of the local group versions, derived from the listed paths of the delegate servers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from pilothouse.aggregator.apiservice.apiservices import api_service_name
from pilothouse.aggregator.apiservice.strategy import API_SERVICES
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class APIServicePriority:
    """Priority of a group among groups, and of a version within its group; greater comes first."""

    group: int
    version: int


Priorities: TypeAlias = Mapping[GroupVersion, APIServicePriority]


def api_services_to_register(listed_paths: Iterable[str], priorities: Priorities) -> Iterator[Json]:
    """Yield the APIServices of group versions with a priority.

    Group versions without a priority are skipped: a permanent APIService would outlive its CustomResourceDefinition.
    """
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
