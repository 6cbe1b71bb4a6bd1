"""A cluster's objects in one file: JSON, one object a line, compressed by gzip.

The first line says what the file is; the others are objects as the API shows them, in no order that means anything:

    {"format":"pilothouse.dev/snapshot","version":1,"revision":"412","inexact":[],"objects":2}
    {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default",…},…}
    {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default",…},…}

A reader refuses a version that is higher than its own; fields that it does not know mean nothing to it. `objects`
counts the lines that follow, so that a file which was cut off is known.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import field
from pathlib import Path
from typing import Final

import orjson

from pilothouse.client.cache.list_watch import PAGE_SIZE, list_all
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

FORMAT: Final = "pilothouse.dev/snapshot"
VERSION: Final = 1


class NotASnapshot(Exception):
    """The file is not a snapshot. The message names the file and the problem."""


def write_snapshot(path: Path, objects: ClusterObjects) -> None:
    """Write a snapshot, readable by its owner only because it contains secrets. Raises OSError."""
    head = {"format": FORMAT, "version": VERSION, "revision": objects.revision, "inexact": objects.inexact}
    lines = [orjson.dumps({**head, "objects": len(objects.items)}), *map(orjson.dumps, objects.items), b""]
    path.touch(mode=0o600)
    path.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))


def read_snapshot(path: Path) -> list[Json]:
    """Return the objects of a snapshot. Raises OSError, NotASnapshot."""
    try:
        lines = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise NotASnapshot(f"{path}: not a snapshot: {error}") from None
    head, objects = (lines[0], lines[1:]) if lines else ({}, [])
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise NotASnapshot(f"{path}: not a snapshot")
    if head["version"] > VERSION:
        raise NotASnapshot(
            f"{path}: version {head['version']} is newer than this Pilothouse, which reads version {VERSION}"
        )
    if head["objects"] != len(objects):
        raise NotASnapshot(f"{path}: the file is incomplete: {len(objects)} of {head['objects']} objects")
    return objects


_SAME_AS = {("events.k8s.io", "events"): ("", "events")}
"""Resources that repeat the objects of another resource."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """All objects at resource version `revision`. Resources in `inexact` were listed later: their servers keep other
    versions.
    """

    revision: str
    items: list[Json]
    inexact: list[str] = field(default_factory=list)


async def all_objects(client: Client) -> ClusterObjects:
    """List every object of resources that support list and create. Raises StatusError, ConnectionFailed."""
    served = (await DiscoveryClient(client).server_resources()).preferred()
    writable = [r for r in served if not r.is_subresource and {"list", "create"} <= set(r.verbs)]
    names = {(r.resource.group, r.resource.resource) for r in writable}
    resources = [r for r in writable if _SAME_AS.get((r.resource.group, r.resource.resource)) not in names]
    newest = await client.resource("v1", "namespaces").list(ListOptions(limit=1))
    cluster = ClusterObjects(newest["metadata"]["resourceVersion"], [])
    for resource in resources:
        objects = client.for_resource(resource.resource)
        exactly = ListOptions(resource_version=cluster.revision, resource_version_match="Exact")
        try:
            items = [item async for page in objects.pages(exactly) for item in page["items"]]
        except StatusError:  # compacted, or the resource of another server
            items = (await list_all(objects, "", PAGE_SIZE)).items
            cluster.inexact.append(str(resource.resource.group_resource))
        kind, api_version = resource.kind.kind, str(resource.kind.group_version)
        cluster.items.extend({"apiVersion": api_version, "kind": kind, **item} for item in items)
    return cluster
