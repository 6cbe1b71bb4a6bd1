"""The informer of APIServices, shared by all parts of the aggregator, and the order of APIServices.

Groups are ordered by group priority, versions of a group by version priority:

    priority 100: v1.b, v1.a; priority 200: v1.c, v2.c  →  [[v2.c, v1.c], [v1.a], [v1.b]]

The first APIService of a group determines the group's place. At equal priority, APIServices are sorted by name, so a
group with v1 precedes a group that starts at v2, regardless of the group names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.versions import preference


class APIServices(RegistryInformer):
    def of_group(self, group: str) -> list[Json]:
        return [api_service for api_service in self.all() if group_of(api_service) == group]


def sorted_by_group_and_version(api_services: Iterable[Json]) -> list[list[Json]]:
    groups: dict[str, list[Json]] = {}
    for api_service in sorted(api_services, key=_by_group_priority):
        groups.setdefault(group_of(api_service), []).append(api_service)
    return [sorted(members, key=_by_version_priority) for members in groups.values()]


def group_of(api_service: Json) -> str:
    return api_service["spec"].get("group") or ""


def group_version_of(api_service: Json) -> GroupVersion:
    return GroupVersion(group_of(api_service), api_service["spec"].get("version") or "")


def api_service_name(group_version: GroupVersion) -> str:
    return f"{group_version.version}.{group_version.group}"


def name_to_group_version(name: str) -> GroupVersion:
    version, _, group = name.partition(".")
    return GroupVersion(group, version)


def enqueue_names(queue: RateLimitingQueue[str], api_services: Iterable[Json]) -> None:
    for api_service in api_services:
        queue.add(name_of(api_service))


def _by_group_priority(api_service: Json) -> tuple[int, str]:
    return -api_service["spec"]["groupPriorityMinimum"], name_of(api_service)


def _by_version_priority(api_service: Json) -> tuple[Any, ...]:
    spec = api_service["spec"]
    return -spec["versionPriority"], preference(spec.get("version") or "")
