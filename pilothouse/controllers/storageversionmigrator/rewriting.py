"""Rewriting of every object of a resource without changes.

An empty apply changes nothing, but makes the server store the object in the current format. With uid and
resourceVersion, the apply fails for objects that were changed, deleted or recreated meanwhile; these are in the current
format already.
"""

from __future__ import annotations

from pilothouse.client.discovery import APIResource
from pilothouse.client.rest.client import Client
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import StatusError

_PASSING = frozenset({429, 500, 503, 504})


class MigrationFailed(Exception):
    """The migration failed permanently."""


async def rewrite_all(client: Client, resource: APIResource, *, upto: int, manager: str) -> None:
    """Rewrite each object last written at or before `upto`. Raises MigrationFailed, or StatusError and ConnectionFailed
    for transient errors."""
    async for page in client.for_resource(resource.resource).metadata_only().pages():
        for item in page["items"]:
            if int(item["metadata"]["resourceVersion"]) <= upto:
                await _rewrite(client, resource, item, manager)


async def _rewrite(client: Client, resource: APIResource, item: Json, manager: str) -> None:
    objects = client.for_resource(resource.resource, namespace=namespace_of(item)).metadata_only()
    own = {"name": name_of(item), "uid": uid_of(item), "resourceVersion": item["metadata"]["resourceVersion"]}
    kind = resource.kind
    applied = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": own}
    try:
        await objects.apply(applied, field_manager=manager)
    except (Conflict, NotFound):
        return
    except StatusError as error:
        if error.code in _PASSING:
            raise
        raise MigrationFailed(f"migration encountered unhandled error: {error}") from error
