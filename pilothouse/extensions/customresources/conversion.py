"""Conversion between versions of a custom resource.

Without a webhook, only apiVersion changes, and fields unknown to the other version are lost.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.machinery.names import version_of
from pilothouse.machinery.objects import Json

Convert = Callable[[Json, str], Json]
"""(object, API version) → converted object."""


def relabelled(obj: Json, api_version: str) -> Json:
    return {**obj, "apiVersion": api_version}


def whole_from_stored(
    resource: CustomResource, version: Version, convert: Convert = relabelled
) -> Callable[[Json], Json] | None:
    """Return the conversion from the stored version that keeps undeclared fields; None for the stored version."""
    if version.storage:
        return None
    api_version = resource.kind(version.name).api_version
    return lambda obj: convert(obj, api_version)


def from_stored(
    resource: CustomResource, version: Version, convert: Convert = relabelled
) -> Callable[[Json], Json] | None:
    """Return the conversion from the stored version, which drops undeclared fields; None for the stored version."""
    whole = whole_from_stored(resource, version, convert)
    if whole is None:
        return None

    def from_stored_version(obj: Json) -> Json:
        converted = whole(obj)
        resource.schemas.of(version.name).prune(converted, drop_invalid=True)
        return converted

    return from_stored_version


def to_stored(
    resource: CustomResource, version: Version, convert: Convert = relabelled
) -> Callable[[Json], Json] | None:
    """Return the conversion to the stored version; None for the stored version itself.

    Fields known to this version only are kept for validation; the strategy drops them at the end.
    """
    if version.storage:
        return None
    api_version = resource.kind(resource.storage_version.name).api_version
    return lambda obj: convert(obj, api_version)


def on_read(resource: CustomResource) -> Callable[[Json], None]:
    """Return a function that updates stored objects, which may predate the schema or the storage version."""
    current = resource.kind(resource.storage_version.name).api_version

    def read(obj: Json) -> None:
        _renew(resource, obj)
        if obj["apiVersion"] != current:
            obj["apiVersion"] = current
            resource.schemas.of(resource.storage_version.name).prune(obj, drop_invalid=True)

    return read


def as_written(resource: CustomResource, value: bytes) -> Json:
    """Return the stored object in the version of its write, with the version's current schema."""
    obj: Json = orjson.loads(value)
    _renew(resource, obj)
    return obj


def _renew(resource: CustomResource, obj: Json) -> None:
    schema = resource.schemas.of(version_of(str(obj["apiVersion"])))
    schema.prune(obj, drop_invalid=True)
    schema.default(obj)
    obj["metadata"].setdefault("generation", 1)
