"""Fields that nobody owns, because the server sees to them or because they only say which object is meant."""

from __future__ import annotations

from pilothouse.machinery.apply.fieldset import difference, of_fields
from pilothouse.machinery.apply.managed import ManagerId, VersionedSet

UNOWNED = of_fields(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)


def strip_meta(managers: dict[ManagerId, VersionedSet], manager: ManagerId) -> dict[ManagerId, VersionedSet]:
    versioned = managers.get(manager)
    if versioned is None:
        return managers
    fields = difference(versioned.fields, UNOWNED)
    if fields:
        return managers | {manager: versioned.with_fields(fields)}
    return {other: own for other, own in managers.items() if other != manager}
