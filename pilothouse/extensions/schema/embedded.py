"""Embedded resources: nested objects with apiVersion, kind and metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.field import Errors, FieldError, Path, invalid, required
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.examine import examine
from pilothouse.machinery.schema.printing import canonical_object_meta
from pilothouse.machinery.schema.tree import object_meta_type
from pilothouse.machinery.validation.names import is_kind_name, name_is_path_segment
from pilothouse.machinery.validation.object_meta import validate_object_meta


class MalformedEmbeddedResource(ValueError):
    """The type or metadata of an embedded resource is malformed."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def coerce(value: Any, schema: Structural | None, path: Path, *, drop_invalid: bool) -> Iterator[str]:
    """Canonicalize embedded metadata, and yield the paths of unknown fields.

    Raises MalformedEmbeddedResource, unless `drop_invalid` allows dropping malformed parts, as on reads.
    """
    if schema is None or not schema.has_embedded_resources:
        return
    if isinstance(value, dict):
        if schema.embedded_resource:
            yield from _coerce_resource(value, path, drop_invalid=drop_invalid)
        for key, child in value.items():
            at = path.child(key) if key in schema.properties else path.key(key)
            yield from coerce(child, schema.of_field(key), at, drop_invalid=drop_invalid)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from coerce(item, schema.items, path.index(index), drop_invalid=drop_invalid)


def _coerce_resource(value: Json, path: Path, *, drop_invalid: bool) -> Iterator[str]:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            if not drop_invalid:
                raise MalformedEmbeddedResource(invalid(path.child(key), printable(value[key]), "must be a string"))
            del value[key]
    if "metadata" not in value:
        return
    report = examine(object_meta_type(), value["metadata"])
    at = path.child("metadata")
    if report.error and not drop_invalid:
        raise MalformedEmbeddedResource(invalid(at, printable(value["metadata"]), report.error))
    if report.error:
        value["metadata"] = _readable_part(value["metadata"])
    value["metadata"] = canonical_object_meta(value["metadata"])
    for strict in report.strict if not report.error else ():
        yield f"{at}.{strict.partition(' field ')[2].strip(chr(34))}"


def _readable_part(metadata: Any) -> Json:
    if not isinstance(metadata, dict):
        return {}
    return {key: part for key, part in metadata.items() if not examine(object_meta_type(), {key: part}).error}


def validate_embedded(value: Any, schema: Structural | None, path: Path) -> Errors:
    if schema is None or not schema.has_embedded_resources:
        return
    if isinstance(value, dict):
        if schema.embedded_resource:
            yield from _validate_resource(value, path)
        for key, child in value.items():
            at = path.child(key) if key in schema.properties else path.key(key)
            yield from validate_embedded(child, schema.of_field(key), at)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from validate_embedded(item, schema.items, path.index(index))


def _validate_resource(value: Json, path: Path) -> Errors:
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield required(path.child(key))
    for key, validate in (("apiVersion", _validate_api_version), ("kind", _validate_kind)):
        if key in value:
            yield from validate(value[key], path.child(key))
    if "metadata" in value:
        yield from _validate_metadata(value["metadata"], path.child("metadata"))


def _validate_api_version(value: Any, path: Path) -> Errors:
    if not isinstance(value, str):
        yield invalid(path, printable(value), "must be a string")
    elif not value:
        yield invalid(path, value, "must not be empty")
    else:
        try:
            GroupVersion.parse(value)
        except ValueError as error:
            yield invalid(path, value, str(error))


def _validate_kind(value: Any, path: Path) -> Errors:
    if not isinstance(value, str):
        yield invalid(path, printable(value), "must be a string")
    elif not value:
        yield invalid(path, value, "must not be empty")
    else:
        yield from (invalid(path, value, problem) for problem in is_kind_name(value))


def _validate_metadata(value: Any, path: Path) -> Errors:
    if error := examine(object_meta_type(), value).error:
        yield invalid(path, printable(value), error)
        return
    meta = {**(value or {})}
    meta["name"] = meta.get("name") or "fakename"
    yield from validate_object_meta(
        meta, namespaced=bool(meta.get("namespace")), name_rule=name_is_path_segment, path=path
    )
