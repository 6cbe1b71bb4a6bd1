"""All objects of a cluster, as of one resource version where it can be had."""

from __future__ import annotations

from dataclasses import field

from pilothouse.client.cache.list_watch import PAGE_SIZE, list_all
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

_SAME_AS = {("events.k8s.io", "events"): ("", "events")}
"""Resources that show the objects of another one once more."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """`revision` is the resource version at which all of them are, but those of the resources in `inexact`, which were
    listed a moment later: other servers have versions of their own."""

    revision: str
    items: list[Json]
    inexact: list[str] = field(default_factory=list)


async def all_objects(client: Client) -> ClusterObjects:
    """Every object that can be listed and made. Raises StatusError, ConnectionFailed."""
    served = (await DiscoveryClient(client).server_resources()).preferred()
    kept = [each for each in served if not each.is_subresource and {"list", "create"} <= set(each.verbs)]
    names = {(each.resource.group, each.resource.resource) for each in kept}
    resources = [each for each in kept if _SAME_AS.get((each.resource.group, each.resource.resource)) not in names]
    newest = await client.resource("v1", "namespaces").list(ListOptions(limit=1))
    found = ClusterObjects(newest["metadata"]["resourceVersion"], [])
    for resource in resources:
        objects = client.for_resource(resource.resource)
        exactly = ListOptions(resource_version=found.revision, resource_version_match="Exact")
        try:
            items = [item async for page in objects.pages(exactly) for item in page["items"]]
        except StatusError:  # gone by now, or not the same server's: as it is now
            items = (await list_all(objects, "", PAGE_SIZE)).items
            found.inexact.append(str(resource.resource.group_resource))
        kind, api_version = resource.kind.kind, str(resource.kind.group_version)
        found.items.extend({"apiVersion": api_version, "kind": kind, **item} for item in items)
    return found
