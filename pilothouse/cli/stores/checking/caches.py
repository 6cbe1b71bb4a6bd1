"""Whether a running server shows what its store has: each list, out of the watch cache, against the store itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from pilothouse.cli.diagnosis.findings import Finding, failed, note
from pilothouse.cli.stores.served import ServedSource
from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.objects import name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_RESTART = "restart this server to rebuild its watch caches"


async def cache_findings(source: ServedSource, places: Mapping[tuple[str, str], str]) -> AsyncIterator[Finding]:
    """`places` are those of the kinds of which the store has objects. Raises StatusError, ConnectionFailed."""
    served = (await DiscoveryClient(source.client).server_resources()).preferred()
    for resource in served:
        place = places.get((resource.kind.group_version.group, resource.kind.kind))
        if place is None or resource.is_subresource or "list" not in resource.verbs:
            continue
        try:
            async for finding in _compared(source, resource, place):
                yield finding
        except StatusError as error:
            yield note("cache", f"{resource.resource.group_resource}: could not be compared: {error}")


async def _compared(source: ServedSource, resource: APIResource, place: str) -> AsyncIterator[Finding]:
    shown: dict[str, int] = {}
    revision = 0
    async for page in source.client.for_resource(resource.resource).pages(ListOptions()):
        revision = int(page["metadata"]["resourceVersion"])
        for item in page["items"]:
            path = "/".join(filter(None, (namespace_of(item), name_of(item))))
            shown[path] = int(item["metadata"]["resourceVersion"])
    base = source.prefix + place
    stored = {entry.key.removeprefix(base): entry.modified async for entry in source.under(place, revision)}
    for path in sorted(shown.keys() | stored.keys()):
        if shown.get(path) != stored.get(path):
            text = f"is at {stored.get(path, 'none')} in the store and at {shown.get(path, 'none')} in the list"
            yield failed("cache", f"{base}{path}: {text}", _RESTART)
