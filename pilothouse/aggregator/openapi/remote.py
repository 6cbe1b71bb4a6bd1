"""An APIService from the view of the OpenAPI controllers: group version, priority, and handler of the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pilothouse.aggregator.apiservice.order import group_version_of
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Handler
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

USER = User("system:aggregator")


@dataclass(frozen=True, slots=True, eq=False)
class RemoteService:
    name: str
    group_version: GroupVersion
    group_priority: int
    version_priority: int
    handler: Handler

    @classmethod
    def of(cls, handler: Handler, api_service: Json) -> RemoteService:
        spec = api_service["spec"]
        return cls(
            name_of(api_service),
            group_version_of(api_service),
            group_priority=spec.get("groupPriorityMinimum") or 0,
            version_priority=spec.get("versionPriority") or 0,
            handler=handler,
        )


R = TypeVar("R", bound="Ranked")


@dataclass(slots=True, eq=False)
class Ranked:
    """A value with the priority of its APIService."""

    service: RemoteService


def by_priority(values: Iterable[R]) -> list[R]:
    """Sort by group priority, then version priority, regardless of the input order."""
    values = list(values)
    groups: dict[str, int] = {}
    for value in values:
        group = value.service.group_version.group
        groups[group] = max(groups.get(group, 0), value.service.group_priority)

    def order(value: R) -> tuple[int, str, int, str]:
        service, group = value.service, value.service.group_version.group
        return -groups[group], group, -service.version_priority, service.name

    return sorted(values, key=order)
