"""Between the versions of a custom resource. Without a webhook an object only changes its apiVersion, and loses what
the other version does not know."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.machinery.errors import InternalError
from pilothouse.machinery.objects import Json


def from_stored(resource: CustomResource, version: Version) -> Callable[[Json], Json] | None:
    """None where the version is the stored one."""
    if version.storage:
        return None
    api_version = resource.kind(version.name).api_version

    def convert(obj: Json) -> Json:
        _check_convertible(resource)
        obj["apiVersion"] = api_version
        resource.schemas.of(version.name).prune(obj, drop_invalid=True)
        return obj

    return convert


def to_stored(resource: CustomResource, version: Version) -> Callable[[Json], Json] | None:
    """What only this version knows is still there, so that it can be validated; the strategy drops it in the end."""
    if version.storage:
        return None
    api_version = resource.kind(resource.storage_version.name).api_version

    def convert(obj: Json) -> Json:
        _check_convertible(resource)
        return {**obj, "apiVersion": api_version}

    return convert


def on_read(resource: CustomResource) -> Callable[[Json], None]:
    """What the store has may be older than the schema, and may be in a version that was once the stored one."""
    current = resource.kind(resource.storage_version.name).api_version

    def read(obj: Json) -> None:
        written = str(obj["apiVersion"]).rpartition("/")[2]
        schema = resource.schemas.of(written)
        schema.prune(obj, drop_invalid=True)
        schema.default(obj)
        obj["metadata"].setdefault("generation", 1)
        if obj["apiVersion"] != current:
            _check_convertible(resource)
            obj["apiVersion"] = current
            resource.schemas.of(resource.storage_version.name).prune(obj, drop_invalid=True)

    return read


def _check_convertible(resource: CustomResource) -> None:
    if resource.converts_by_webhook:
        raise InternalError.of(f"conversion webhooks are not supported: {resource.plural}.{resource.group}")
