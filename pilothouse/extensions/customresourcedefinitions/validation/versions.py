"""The versions of a custom resource: their names, schemas, subresources, columns and selectable fields."""

from __future__ import annotations

from pilothouse.extensions.customresourcedefinitions.internal_form import InternalSpec
from pilothouse.extensions.customresourcedefinitions.validation.deprecation import validate_deprecation_warning
from pilothouse.extensions.customresourcedefinitions.validation.selectable_fields import validate_selectable_fields
from pilothouse.extensions.customresourcedefinitions.validation.subresources import (
    validate_column,
    validate_subresources,
)
from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.extensions.schema.structural import structural
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1035_label


def validate_versions(spec: InternalSpec, path: Path) -> Errors:
    """What each version says for itself."""
    for position, version in enumerate(spec.versions):
        where, name = path.index(position), version.get("name") or ""
        if problems := is_dns1035_label(name):
            yield invalid(where.child("name"), name, ",".join(problems))
        yield from validate_deprecation_warning(version, where)
        has_status = _has_status(spec.of_version(version, "subresources"))
        yield from _validate_schema(version.get("schema"), where.child("schema"), has_status=has_status)
        yield from _validate_parts(version, where)
        yield from _validate_selectable_fields(version, spec.of_version(version, "schema"), where)


def validate_common(spec: InternalSpec, path: Path) -> Errors:
    """What all versions say alike."""
    has_status = any(_has_status(spec.of_version(version, "subresources")) for version in spec.versions)
    yield from _validate_schema(spec.common.get("schema"), path.child("validation"), has_status=has_status)
    yield from _validate_parts(spec.common, path)
    yield from _validate_selectable_fields(spec.common, spec.common.get("schema"), path)


def _has_status(subresources: Json | None) -> bool:
    return (subresources or {}).get("status") is not None


def _validate_schema(validation: Json | None, path: Path, *, has_status: bool) -> Errors:
    schema = (validation or {}).get("openAPIV3Schema")
    if schema is not None:
        context = VersionContext(has_status=has_status)
        yield from validate_crd_schema(schema, path=path.child("openAPIV3Schema"), version_context=context)


def _validate_parts(said: Json, path: Path) -> Errors:
    yield from validate_subresources(said.get("subresources"), path.child("subresources"))
    for position, column in enumerate(said.get("additionalPrinterColumns") or ()):
        yield from validate_column(column, path.child("additionalPrinterColumns").index(position))


def _validate_selectable_fields(said: Json, validation: Json | None, path: Path) -> Errors:
    fields, schema = said.get("selectableFields"), (validation or {}).get("openAPIV3Schema")
    if not fields:
        return
    if schema is None:
        yield invalid(path.child("selectableFields"), "", "may only be set when validations.schema is included")
        return
    yield from validate_selectable_fields(fields, structural(schema), path.child("selectableFields"))
