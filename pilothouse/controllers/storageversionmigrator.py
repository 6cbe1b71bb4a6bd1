"""storage-version-migrator-controller: rewrites all objects of a resource, to eliminate obsolete storage versions,
encryption keys and encodings.

    created → Running (one for each resource, the oldest) → resourceVersion → every object up to it written → Succeeded
                                                          └ or Failed                       → Running is False again

Each step is one status write; its update event triggers the next step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.discovery import APIResource, DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import CUSTOM_RESOURCE_DEFINITIONS, STORAGE_VERSION_MIGRATIONS, in_release
from pilothouse.kinds.conditions import Condition, find_condition, is_true, set_condition
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, part, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError
from pilothouse.machinery.times import now, parse_time

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
_NAME = "storage-version-migrator-controller"
_WORKERS = 5
_NEEDED = frozenset({"update", "patch", "list"})
_PATIENCE = 60.0  # seconds to wait for a resource that is not served yet
_AGAIN = 1.0
MIGRATING = "StorageMigrating"
_MANAGER = "migration-runner-controller"
_TRIES = 5
_PASSING = frozenset({429, 500, 503, 504})


async def run(context: ControllerContext) -> None:
    queue, informer = context.queue(_NAME, GroupResource), context.informer(in_release(STORAGE_VERSION_MIGRATIONS))

    def enqueue(migration: Json) -> None:
        queue.add(resource_of(migration))

    def enqueue_all(_: object) -> None:
        """Enqueue all migrations: a deleted migration may have blocked others."""
        for migration in informer.indexer.list():
            enqueue(migration)

    informer.add_event_handler(
        ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new), delete=enqueue_all)
    )
    migrator = StorageVersionMigrator(context, informer.indexer)
    controller = Controller(
        _NAME, migrator.sync, caches=(informer,), workers=_WORKERS, queue=queue, clock=context.clock
    )
    await controller.run()


class StorageVersionMigrator:
    def __init__(self, context: ControllerContext, migrations: Indexer) -> None:
        self._clock = context.clock
        self._client = context.client
        self._migrations = migrations
        self._statuses = context.client.for_resource(in_release(STORAGE_VERSION_MIGRATIONS))
        self._definitions = MigratedDefinitions(context.client)

    async def sync(self, resource: GroupResource) -> Requeue | None:
        """Take the next step of the resource's migration. Raises StatusError or ConnectionFailed, which are retried."""
        migrations = [
            copy.deepcopy(migration) for migration in self._migrations.list() if resource_of(migration) == resource
        ]
        for migration in migrations:
            if is_true(migration, RUNNING) and _has_ended(migration):
                await self._definitions.finish(resource, succeeded=is_true(migration, SUCCEEDED))
                await self._set(migration, RUNNING, "MigrationCompleted", "Migration completed", status="False")
                return None
        running = next((migration for migration in migrations if is_true(migration, RUNNING)), None)
        if running is not None:
            resources = (await DiscoveryClient(self._client).server_resources()).preferred()
            served = next((candidate for candidate in resources if candidate.resource.group_resource == resource), None)
            if served is None and self._is_young(running):
                return Requeue(_AGAIN)
            try:
                if served is None:
                    raise MigrationFailed("resource does not exist in discovery")
                # Record the resourceVersion up to which objects are rewritten, or rewrite them.
                version = part(running, "status").get("resourceVersion")
                if version:
                    await rewrite_all(self._client, served, upto=int(version), manager=_NAME)
                    await self._set(running, SUCCEEDED, "StorageVersionMigrationSucceeded", "")
                else:
                    if not set(served.verbs) >= _NEEDED:
                        verbs = " ".join(("update", "patch", "list"))
                        raise MigrationFailed(
                            f'resource "{served.resource}" does not support discovery operations: [{verbs}]'
                        )
                    newest = await self._client.for_resource(served.resource).metadata_only().list(ListOptions(limit=1))
                    running.setdefault("status", {})["resourceVersion"] = newest["metadata"]["resourceVersion"]
                    await self._statuses.update_status(running)
            except MigrationFailed as error:
                await self._set(running, FAILED, "StorageVersionMigrationFailed", str(error))
            return None
        waiting = (migration for migration in migrations if not _has_ended(migration))
        oldest = min(
            waiting, key=lambda migration: (metadata(migration)["creationTimestamp"], name_of(migration)), default=None
        )
        if oldest is not None:
            await self._definitions.mark(resource, name_of(oldest))
            await self._set(oldest, RUNNING, "MigrationRunning", "The migration is running")
        return None

    def _is_young(self, migration: Json) -> bool:
        created = parse_time(metadata(migration)["creationTimestamp"])
        return created is not None and self._clock.wall() < created.timestamp() + _PATIENCE

    async def _set(self, migration: Json, kind: str, reason: str, message: str, *, status: str = "True") -> None:
        set_condition(migration, Condition(kind, status, reason, message))
        await self._statuses.update_status(migration)


def resource_of(migration: Json) -> GroupResource:
    """Return the resource to migrate."""
    resource = migration["spec"]["resource"]
    return GroupResource(resource.get("group") or "", resource["resource"])


def _has_ended(migration: Json) -> bool:
    return is_true(migration, SUCCEEDED) or is_true(migration, FAILED)


class MigratedDefinitions:
    """Migration state in the status of a CustomResourceDefinition.

    During a migration, the condition StorageMigrating is True. Afterwards storedVersions is reduced to the storage
    version, unless the definition changed meanwhile: then the stored versions are unknown.
    """

    def __init__(self, client: Client) -> None:
        self._definitions = client.for_resource(CUSTOM_RESOURCE_DEFINITIONS)

    async def mark(self, resource: GroupResource, migration: str) -> None:
        """Set StorageMigrating; no-op for resources without a definition. Raises StatusError."""
        await self._change(
            resource,
            lambda definition: {
                "conditions": [_condition(definition, "True", "MigrationRunning", f"Migration {migration} is running")]
            },
        )

    async def finish(self, resource: GroupResource, *, succeeded: bool) -> None:
        """Record the outcome of the migration. Raises StatusError."""
        await self._change(resource, lambda definition: _end(definition, succeeded))

    async def _change(self, resource: GroupResource, status: Callable[[Json], Json]) -> None:
        for attempt in range(_TRIES):
            try:
                definition = await self._definitions.get(f"{resource.resource}.{resource.group}")
                await self._definitions.apply(
                    _applied(definition, status(definition)), field_manager=_MANAGER, force=True, subresource="status"
                )
            except NotFound:
                return
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
                continue
            return


def _end(definition: Json, succeeded: bool) -> Json:
    noted = find_condition(definition, MIGRATING) or {}
    unchanged = noted.get("observedGeneration") == metadata(definition).get("generation")
    if not succeeded:
        return {"conditions": [_condition(definition, "False", "MigrationFailed", "The migration has failed")]}
    message = "The migration has succeeded " + (
        "and the stored versions have been updated"
        if unchanged
        else "but the stored versions have not been updated due to a generation mismatch"
    )
    status: Json = {"conditions": [_condition(definition, "False", "MigrationSucceeded", message)]}
    if unchanged:
        versions = definition["spec"]["versions"]
        status["storedVersions"] = [next(version["name"] for version in versions if version["storage"])]
    return status


def _condition(definition: Json, status: str, reason: str, message: str) -> Json:
    return {
        "type": MIGRATING,
        "status": status,
        "lastTransitionTime": now(),
        "reason": reason,
        "message": message,
        "observedGeneration": metadata(definition).get("generation", 0),
    }


def _applied(definition: Json, status: Json) -> Json:
    """Return the apply configuration; its resourceVersion causes a conflict if the definition has changed."""
    own = {"name": name_of(definition), "resourceVersion": metadata(definition)["resourceVersion"]}
    kind = {"apiVersion": str(CUSTOM_RESOURCE_DEFINITIONS.group_version), "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": own, "status": status}


class MigrationFailed(PilothouseError):
    """The migration failed permanently."""


async def rewrite_all(client: Client, resource: APIResource, *, upto: int, manager: str) -> None:
    """Make the server store each object last written at or before `upto` in the current format.

    An empty apply changes nothing, but stores the object again. With uid and resourceVersion, the apply fails for
    objects that were changed, deleted or recreated meanwhile; these are in the current format already. Raises
    MigrationFailed, or StatusError and ConnectionFailed for transient errors.
    """
    async for page in client.for_resource(resource.resource).metadata_only().pages():
        for item in page["items"]:
            if int(item["metadata"]["resourceVersion"]) <= upto:
                objects = client.for_resource(resource.resource, namespace=namespace_of(item)).metadata_only()
                own = {
                    "name": name_of(item),
                    "uid": uid_of(item),
                    "resourceVersion": item["metadata"]["resourceVersion"],
                }
                kind = resource.kind
                applied = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": own}
                try:
                    await objects.apply(applied, field_manager=manager)
                except (Conflict, NotFound):
                    continue
                except StatusError as error:
                    if error.code in _PASSING:
                        raise
                    raise MigrationFailed(f"migration encountered unhandled error: {error}") from error
