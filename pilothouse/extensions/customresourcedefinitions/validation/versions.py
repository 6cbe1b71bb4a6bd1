"""Validation of versions: names, deprecation warnings, schemas, subresources, columns and selectable fields.

Selectable fields are strings, integers and booleans outside of the metadata, limited in number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from pilothouse.extensions.customresourcedefinitions.forms import InternalSpec
from pilothouse.extensions.customresourcedefinitions.validation import ratcheting
from pilothouse.extensions.schema.definition.structure import unsupported_part
from pilothouse.extensions.schema.definition.validate import VersionContext, validate_crd_schema
from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.jsonpath import validate_simple_path
from pilothouse.extensions.schema.structural import Structural, structural
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, required, too_many
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1035_label

_MAX_WARNING_LENGTH = 256
_PRINTABLE = "must only contain printable UTF-8 characters; "
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def validate_versions(spec: InternalSpec, path: Path, options: ratcheting.ValidationOptions) -> Errors:
    """Validate the fields of each version."""
    for position, version in enumerate(spec.versions):
        where, name = path.index(position), version.get("name") or ""
        if problems := is_dns1035_label(name):
            yield invalid(where.child("name"), name, ",".join(problems))
        warning: str | None = version.get("deprecationWarning")
        for problem in _warning_problems(bool(version.get("deprecated")), warning):
            yield invalid(where.child("deprecationWarning"), warning, problem)
        has_status = _has_status(spec.of_version(version, "subresources"))
        context = _context(options, name, has_status=has_status)
        yield from _validate_schema(version.get("schema"), where.child("schema"), context)
        yield from _validate_subresources_and_columns(version, where)
        reason = "may only be set when `version.schema.openAPIV3Schema` is not included"
        fields = _SelectableFields(version, where, otherwise=reason, allows_too_many=name in options.too_many_fields)
        yield from fields.validate()


def validate_common_to_versions(spec: InternalSpec, path: Path, options: ratcheting.ValidationOptions) -> Errors:
    """Validate the fields common to all versions."""
    has_status = any(_has_status(spec.of_version(version, "subresources")) for version in spec.versions)
    context = _context(options, spec.version, has_status=has_status)
    yield from _validate_schema(spec.common.get("schema"), path.child("validation"), context)
    yield from _validate_subresources_and_columns(spec.common, path)
    reason = "may only be set when validations.schema is included"
    fields = _SelectableFields(
        spec.common, path, otherwise=reason, allows_too_many=ratcheting.COMMON in options.too_many_fields
    )
    yield from fields.validate()


def _has_status(subresources: Json | None) -> bool:
    return (subresources or {}).get("status") is not None


def _context(options: ratcheting.ValidationOptions, version: str, *, has_status: bool) -> VersionContext:
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


def _validate_subresources_and_columns(declared: Json, path: Path) -> Errors:
    yield from validate_subresources(declared.get("subresources"), path.child("subresources"))
    for position, column in enumerate(declared.get("additionalPrinterColumns") or ()):
        yield from validate_column(column, path.child("additionalPrinterColumns").index(position))


@dataclass(frozen=True, slots=True)
class _SelectableFields:
    """Selectable fields, looked up in the schema of the same holder only."""

    declared: Json
    path: Path
    otherwise: str
    """Message if the holder has no schema."""
    allows_too_many: bool

    def validate(self) -> Errors:
        fields, at = self.declared.get("selectableFields"), self.path.child("selectableFields")
        schema = (self.declared.get("schema") or {}).get("openAPIV3Schema")
        if not fields:
            return
        if schema is None:
            yield invalid(at, "", self.otherwise)
        elif unsupported := unsupported_part(schema):
            yield invalid(self.path.child("schema.openAPIV3Schema"), "", unsupported)
        else:
            found = structural(schema)
            yield from _validate_selectable_fields(fields, found, at, allows_too_many=self.allows_too_many)


def _warning_problems(deprecated: bool, warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > _MAX_WARNING_LENGTH:
        yield f"must be <= {_MAX_WARNING_LENGTH} characters long"
    if not warning:
        yield "must not be an empty string"
    odd = next((position for position, char in enumerate(warning) if not _is_printable(char)), None)
    if odd is not None:
        yield f"{_PRINTABLE}non-printable character found at index {len(warning[:odd].encode())}"


def _is_printable(char: str) -> bool:
    """Return whether Go's unicode.IsPrint accepts the character: letters, marks, numbers, punctuation, symbols, and the
    ASCII space."""
    return char == " " or unicodedata.category(char)[0] in "LMNPS"


def _validate_selectable_fields(
    fields: Sequence[Json], schema: Structural, path: Path, *, allows_too_many: bool = False
) -> Errors:
    known: set[str] = set()
    for position, field in enumerate(fields):
        where, text = path.index(position).child("jsonPath"), field.get("jsonPath") or ""
        if not text:
            yield required(where)
            continue
        try:
            found = find_field(text, schema, brackets=False)
        except InvalidFieldPath as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if found.path.text.partition(".")[0] == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found.schema is None or found.schema.type not in _SELECTABLE_TYPES:
            yield invalid(where, text, _NOT_SELECTABLE)
        if found.path.text in known:
            yield duplicate(where, text)
        known.add(found.path.text)
    if len(known) > ratcheting.MAX_SELECTABLE_FIELDS and not allows_too_many:
        yield too_many(path, len(known), ratcheting.MAX_SELECTABLE_FIELDS)


_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def validate_subresources(subresources: Json | None, path: Path) -> Errors:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    yield from _validate_required_path(scale, "specReplicasPath", path, under=".spec.")
    yield from _validate_required_path(scale, "statusReplicasPath", path, under=".status.")
    if selector := scale.get("labelSelectorPath"):
        where = path.child("scale.labelSelectorPath")
        if errors := list(validate_simple_path(selector, where)):
            yield from errors
        elif not selector.startswith((".spec.", ".status.")):
            yield invalid(where, selector, "should be a json path under either .spec or .status")


def _validate_required_path(scale: Json, field: str, path: Path, *, under: str) -> Errors:
    where, value = path.child(f"scale.{field}"), scale.get(field) or ""
    if not value:
        yield required(where)
    elif errors := list(validate_simple_path(value, where)):
        yield from errors
    elif not value.startswith(under):
        yield invalid(where, value, f"should be a json path under {under[:-1]}")


def validate_column(column: Json, path: Path) -> Errors:
    if not column.get("name"):
        yield required(path.child("name"))
    kind, one_of = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield required(path.child("type"), one_of)
    elif kind not in _COLUMN_TYPES:
        yield invalid(path.child("type"), kind, one_of)
    if (form := column.get("format")) and form not in _COLUMN_FORMATS:
        yield invalid(path.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.get("jsonPath"):
        yield required(path.child("JSONPath"))
    else:
        yield from validate_simple_path(column["jsonPath"], path.child("JSONPath"))
