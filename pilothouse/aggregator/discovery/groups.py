"""Group documents at /apis and /apis/GROUP, derived from APIServices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilothouse.aggregator.apiservice.apiservices import APIServices, group_of, sorted_by_group_and_version
from pilothouse.aggregator.apiservice.strategy import GROUP_VERSION
from pilothouse.apiserver.discovery.groups import api_group_list
from pilothouse.apiserver.discovery.handlers import any_method
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json


def apis_handler(api_services: APIServices) -> Handler:
    """Return the handler of the group list. apiregistration.k8s.io comes first, although no APIService declares it."""
    known: list[Json] = []
    document = api_group_list(_groups(known))

    def current() -> Json:
        """Return the cached document; rebuild after a change of any APIService object."""
        nonlocal known, document
        current = api_services.all()
        if current != known:
            known, document = current, api_group_list(_groups(current))
        return document

    return any_method(current)


def api_group_handler(api_services: APIServices, group: str, delegate: Handler) -> Handler:
    """Return the handler of one group; without APIServices, the delegate answers."""

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
    """Return the APIGroup; the first version in order is the preferred version."""
    (in_order,) = sorted_by_group_and_version(members)
    return _entry(group_of(members[0]), [api_service["spec"]["version"] for api_service in in_order])


def _entry(group: str, versions: list[str]) -> Json:
    entries = [{"groupVersion": str(GroupVersion(group, version)), "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}
