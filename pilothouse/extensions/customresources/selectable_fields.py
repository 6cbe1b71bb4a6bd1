"""The fields of custom resources that field selectors may name."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.registry.resource import cluster_metadata_fields, metadata_fields
from pilothouse.apiserver.storage.object import Fields
from pilothouse.extensions.customresources.model import CustomResource, Version
from pilothouse.extensions.schema.jsonpath import JsonPath, compile_path
from pilothouse.machinery.govalue import go_value
from pilothouse.machinery.objects import Json


def labels_of_version(resource: CustomResource, version: Version) -> set[str]:
    """What selectors may name in this version."""
    scope = {"metadata.name", "metadata.namespace"} if resource.namespaced else {"metadata.name"}
    return scope | {path.removeprefix(".") for path in version.selectable_fields}


def fields_function(resource: CustomResource) -> Callable[[Json], Fields]:
    """Of a stored object, the fields that are selectable in any version."""
    own = metadata_fields if resource.namespaced else cluster_metadata_fields
    paths = {path for version in resource.versions.values() for path in version.selectable_fields}
    selectable = {path.removeprefix("."): compile_path(path) for path in sorted(paths)}

    def fields(obj: Json) -> Fields:
        return own(obj) | {name: _text(path, obj) for name, path in selectable.items()}

    return fields


def _text(path: JsonPath, obj: Json) -> str:
    found = path.find(obj)
    return go_value(found[0]) if found and found[0] is not None else ""
