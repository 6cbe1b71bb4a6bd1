"""Validation of subresources and printer columns."""

from __future__ import annotations

from pilothouse.extensions.schema.jsonpath import validate_simple_path
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json

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
