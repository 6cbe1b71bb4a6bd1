"""Checks of the SQLite file of an embedded store, and of the watch caches of a running server."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.apiserver.storage.sqlite.history import newest_revision, rows
from pilothouse.apiserver.storage.sqlite.schema import UNREADABLE, open_to_read, read_meta
from pilothouse.cli.diagnosis.findings import Finding, failed, note
from pilothouse.cli.stores.opening import ServedSource
from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.objects import name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_RESTORE = (
    "back up the readable keys (`pilothouse backup --skip-damaged`) and restore them into an empty data directory"
)
_RESTART = "restart this server to rebuild its watch caches"
_BROKEN_CHAIN = """
SELECT h.revision, h.key FROM history h LEFT JOIN history p ON p.revision = h.previous
WHERE h.previous IS NOT NULL AND h.revision > :swept
AND (p.revision IS NULL OR p.key != h.key OR p.revision >= h.revision)
"""


def file_findings(directory: Path) -> Iterator[Finding]:
    """Yield the faults of the database file. Raises StorageError if the file cannot be opened."""
    file = directory / DataDirectory.FILE
    with closing(open_to_read(file)) as connection:
        try:
            yield from _database_findings(connection, file)
        except UNREADABLE as error:
            yield failed("file", f"{file}: {error}", _RESTORE)


def _database_findings(connection: sqlite3.Connection, file: Path) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check(10)"):
        if line != "ok":
            yield failed("file", f"{file}: {line}", _RESTORE)
    swept, compacted = read_meta(connection, "swept"), read_meta(connection, "compacted")
    if not swept <= compacted <= newest_revision(connection):
        text = f"swept to {swept}, compacted to {compacted}, at revision {newest_revision(connection)}"
        yield failed("revision", f"{file}: {text}", _RESTORE)
    for row in rows(connection):
        if row.damage is not None:
            yield failed("checksum", row.damage, _RESTORE)
    for revision, key in connection.execute(_BROKEN_CHAIN, {"swept": swept}):
        yield failed("revision", f"{key}: the value before revision {revision} is missing", _RESTORE)


async def cache_findings(source: ServedSource, places: Mapping[tuple[str, str], str]) -> AsyncIterator[Finding]:
    """Yield the differences between the lists of a server and its store. Raises StatusError, ConnectionFailed.

    `places` has the key prefix of each (group, kind) in the store.
    """
    served = (await DiscoveryClient(source.client).server_resources()).preferred()
    for resource in served:
        prefix = places.get((resource.kind.group_version.group, resource.kind.kind))
        if prefix is None or resource.is_subresource or "list" not in resource.verbs:
            continue
        try:
            async for finding in _compare(source, resource, prefix):
                yield finding
        except StatusError as error:
            yield note("cache", f"{resource.resource.group_resource}: could not be compared: {error}")


async def _compare(source: ServedSource, resource: APIResource, prefix: str) -> AsyncIterator[Finding]:
    listed: dict[str, int] = {}
    revision = 0
    async for page in source.client.for_resource(resource.resource).pages(ListOptions()):
        revision = int(page["metadata"]["resourceVersion"])
        for item in page["items"]:
            path = "/".join(filter(None, (namespace_of(item), name_of(item))))
            listed[path] = int(item["metadata"]["resourceVersion"])
    base = source.prefix + prefix
    stored = {entry.key.removeprefix(base): entry.modified async for entry in source.under(prefix, revision)}
    for path in sorted(listed.keys() | stored.keys()):
        if listed.get(path) != stored.get(path):
            text = f"is at {stored.get(path, 'none')} in the store and at {listed.get(path, 'none')} in the list"
            yield failed("cache", f"{base}{path}: {text}", _RESTART)
