"""The documents of groups at /apis and /apis/GROUP, as the APIServices say that they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.aggregator.apiservice.order import group_of, sorted_by_group_and_version
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.aggregator.apiservices import APIServices
from pilothouse.apiserver.discovery.groups import api_group_list
from pilothouse.apiserver.discovery.handlers import any_method
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json


def apis_handler(api_services: APIServices) -> Handler:
    """The list of groups. That of the APIServices themselves comes first, without having one."""
    known: list[Json] = []
    document = api_group_list(_groups(known))

    def current() -> Json:
        """Made again when an APIService has changed, that is, has become another object."""
        nonlocal known, document
        found = api_services.all()
        if found != known:
            known, document = found, api_group_list(_groups(found))
        return document

    return any_method(current)


def api_group_handler(api_services: APIServices, group: str, delegate: Handler) -> Handler:
    """Return the handler of one group; when its last APIService has gone, the delegate answers."""

    async def discover(request: Request) -> Response:
        members = api_services.of_group(group)
        if not members:
            return await delegate(request)
        return await any_method(lambda: {"kind": "APIGroup", "apiVersion": "v1", **_group(members)})(request)

    return discover


def _groups(api_services: Iterable[Json]) -> Iterator[Json]:
    yield _entry(GROUP_VERSION.group, [GROUP_VERSION.version])
    for members in sorted_by_group_and_version(api_services):
        if group_of(members[0]):
            yield _group(members)


def _group(members: list[Json]) -> Json:
    """The first of the sorted versions is the preferred one."""
    (in_order,) = sorted_by_group_and_version(members)
    return _entry(group_of(members[0]), [each["spec"]["version"] for each in in_order])


def _entry(group: str, versions: list[str]) -> Json:
    shown = [{"groupVersion": str(GroupVersion(group, version)), "version": version} for version in versions]
    return {"name": group, "versions": shown, "preferredVersion": shown[0]}
