"""The versions of a custom resource: their names, schemas, subresources, columns and selectable fields."""

from __future__ import annotations

from pilothouse.extensions.customresourcedefinitions.internal_form import InternalSpec
from pilothouse.extensions.customresourcedefinitions.validation.deprecation import validate_deprecation_warning
from pilothouse.extensions.customresourcedefinitions.validation.ratcheting import COMMON, ValidationOptions
from pilothouse.extensions.customresourcedefinitions.validation.selectable_fields import validate_selectable_fields
from pilothouse.extensions.customresourcedefinitions.validation.subresources import (
    validate_column,
    validate_subresources,
)
from pilothouse.extensions.schema.definition.structure import unsupported_part
from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.extensions.schema.structural import structural
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1035_label


def validate_versions(spec: InternalSpec, path: Path, options: ValidationOptions) -> Errors:
    """What each version says for itself."""
    for position, version in enumerate(spec.versions):
        where, name = path.index(position), version.get("name") or ""
        if problems := is_dns1035_label(name):
            yield invalid(where.child("name"), name, ",".join(problems))
        yield from validate_deprecation_warning(version, where)
        has_status = _has_status(spec.of_version(version, "subresources"))
        context = _context(options, name, has_status=has_status)
        yield from _validate_schema(version.get("schema"), where.child("schema"), context)
        yield from _validate_parts(version, where)
        why = "may only be set when `version.schema.openAPIV3Schema` is not included"
        fields = _Fields(version, where, otherwise=why, allows_too_many=name in options.too_many_fields)
        yield from fields.validate()


def validate_common(spec: InternalSpec, path: Path, options: ValidationOptions) -> Errors:
    """What all versions say alike."""
    has_status = any(_has_status(spec.of_version(version, "subresources")) for version in spec.versions)
    context = _context(options, spec.version, has_status=has_status)
    yield from _validate_schema(spec.common.get("schema"), path.child("validation"), context)
    yield from _validate_parts(spec.common, path)
    why = "may only be set when validations.schema is included"
    fields = _Fields(spec.common, path, otherwise=why, allows_too_many=COMMON in options.too_many_fields)
    yield from fields.validate()


def _has_status(subresources: Json | None) -> bool:
    return (subresources or {}).get("status") is not None


def _context(options: ValidationOptions, version: str, *, has_status: bool) -> VersionContext:
    return VersionContext(
        has_status=has_status,
        requires_structure=options.requires_structure,
        requires_pruned_defaults=options.requires_pruned_defaults,
        requires_valid_types=options.requires_valid_types,
        requires_atomic_sets=options.requires_atomic_sets,
        requires_map_keys=options.requires_map_keys,
        limits_each_rule=version not in options.unchanged_schemas,
    )


def _validate_schema(validation: Json | None, path: Path, context: VersionContext) -> Errors:
    schema = (validation or {}).get("openAPIV3Schema")
    if schema is not None:
        yield from validate_crd_schema(schema, path=path.child("openAPIV3Schema"), version_context=context)


def _validate_parts(said: Json, path: Path) -> Errors:
    yield from validate_subresources(said.get("subresources"), path.child("subresources"))
    for position, column in enumerate(said.get("additionalPrinterColumns") or ()):
        yield from validate_column(column, path.child("additionalPrinterColumns").index(position))


@dataclass(frozen=True, slots=True)
class _Fields:
    """Selectable fields. They are looked up in the schema that stands beside them, and nowhere else."""

    said: Json
    path: Path
    otherwise: str
    """What to say when no schema stands there."""
    allows_too_many: bool

    def validate(self) -> Errors:
        fields, at = self.said.get("selectableFields"), self.path.child("selectableFields")
        schema = (self.said.get("schema") or {}).get("openAPIV3Schema")
        if not fields:
            return
        if schema is None:
            yield invalid(at, "", self.otherwise)
        elif unsupported := unsupported_part(schema):
            yield invalid(self.path.child("schema.openAPIV3Schema"), "", unsupported)
        else:
            found = structural(schema)
            yield from validate_selectable_fields(fields, found, at, allows_too_many=self.allows_too_many)
