"""Migration state in the status of a CustomResourceDefinition.

During a migration, the condition StorageMigrating is True. Afterwards storedVersions is reduced to the storage version,
unless the definition changed meanwhile: then the stored versions are unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import CUSTOM_RESOURCE_DEFINITIONS
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.times import now

MIGRATING = "StorageMigrating"
_MANAGER = "migration-runner-controller"
_TRIES = 5


class MigratedDefinitions:
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
        status["storedVersions"] = [next(each["name"] for each in versions if each["storage"])]
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
