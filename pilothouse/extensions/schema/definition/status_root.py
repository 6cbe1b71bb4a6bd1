"""The root of a schema whose resource has a status subresource, since the status is checked by its own part alone."""

from __future__ import annotations

from pilothouse.extensions.schema.definition.go_form import go_schema
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.objects import Json

_ALLOWED = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
_NAMES = " ".join(_ALLOWED.values())
_WHY = f"only [{_NAMES}] fields are allowed at the root of the schema if the status subresource is enabled"


def validate_root_with_status(schema: Json, path: Path) -> Errors:
    kind = schema.get("type") or ""
    if kind and kind != "object":
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(path.child("type"), kind, why)
        return
    if any(value not in (None, "", False, [], {}) and key not in _ALLOWED for key, value in schema.items()):
        yield invalid(path, go_schema(schema), _WHY)
