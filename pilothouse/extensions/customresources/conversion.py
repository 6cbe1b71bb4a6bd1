"""Between the versions of a custom resource, for whoever knows both. Without a webhook an object only changes its
apiVersion, and loses what the other version does not know."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.machinery.objects import Json

Convert = Callable[[Json, str], Json]
"""An object to an API version."""


def relabelled(obj: Json, api_version: str) -> Json:
    return {**obj, "apiVersion": api_version}


def from_stored(
    resource: CustomResource, version: Version, convert: Convert = relabelled
) -> Callable[[Json], Json] | None:
    """None where the version is the stored one."""
    if version.storage:
        return None
    api_version = resource.kind(version.name).api_version

    def from_stored_version(obj: Json) -> Json:
        converted = convert(obj, api_version)
        resource.schemas.of(version.name).prune(converted, drop_invalid=True)
        return converted

    return from_stored_version


def to_stored(
    resource: CustomResource, version: Version, convert: Convert = relabelled
) -> Callable[[Json], Json] | None:
    """Return a function to the stored version; None where this is the stored one. Fields that only this version knows
    are still there, so that they can be validated; the strategy drops them in the end.
    """
    if version.storage:
        return None
    api_version = resource.kind(resource.storage_version.name).api_version
    return lambda obj: convert(obj, api_version)


def on_read(resource: CustomResource) -> Callable[[Json], None]:
    """Return a function that brings a stored object up to date: it may be older than the schema, and in a version that
    was once the stored one.
    """
    current = resource.kind(resource.storage_version.name).api_version

    def read(obj: Json) -> None:
        _renew(resource, obj)
        if obj["apiVersion"] != current:
            obj["apiVersion"] = current
            resource.schemas.of(resource.storage_version.name).prune(obj, drop_invalid=True)

    return read


def as_written(resource: CustomResource, value: bytes) -> Json:
    """Return the stored object in the version in which it was written, as that version's schema is now."""
    obj: Json = orjson.loads(value)
    _renew(resource, obj)
    return obj


def _renew(resource: CustomResource, obj: Json) -> None:
    schema = resource.schemas.of(str(obj["apiVersion"]).rpartition("/")[2])
    schema.prune(obj, drop_invalid=True)
    schema.default(obj)
    obj["metadata"].setdefault("generation", 1)
