"""Table columns of custom resources, from the definition's JSON paths."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apiserver.registry.table import NAME, Cell, Column
from pilothouse.extensions.customresources.model import Version
from pilothouse.extensions.schema.jsonpath import InvalidJsonPath, JsonPath, compile_path
from pilothouse.machinery.durations import age
from pilothouse.machinery.gofmt import go_value
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import documentation
from pilothouse.machinery.schema.gotime import TimeError

_SCALE: tuple[Json, ...] = (
    {
        "name": "Desired",
        "type": "integer",
        "description": "Number of desired replicas",
        "jsonPath": ".spec.replicas",
    },
    {
        "name": "Available",
        "type": "integer",
        "description": "Number of actual replicas",
        "jsonPath": ".status.replicas",
    },
)
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def columns_of(version: Version) -> list[Column]:
    """Return the name column and the declared columns; without declared columns, the age. An invalid path ends the
    list."""
    columns = [NAME]
    for declared in version.columns or [_age()]:
        try:
            columns.append(_column(declared))
        except InvalidJsonPath:
            break
    return columns


def scale_columns() -> list[Column]:
    """Return the columns of a Scale, equal for all custom resources."""
    return [NAME, *map(_column, (*_SCALE, _age()))]


def _age() -> Json:
    description = documentation.of(_OBJECT_META, "creationTimestamp")
    return {"name": "Age", "type": "date", "description": description, "jsonPath": ".metadata.creationTimestamp"}


def _column(declared: Json) -> Column:
    path: str = declared["jsonPath"]
    return Column(
        declared["name"],
        _cell(compile_path(path), declared["type"]),
        type=declared["type"],
        format=declared.get("format") or "",
        priority=declared.get("priority") or 0,
        description=declared.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
    )


def _cell(path: JsonPath, kind: str) -> Cell:
    def cell(obj: Json) -> Any:
        values = path.find(obj)
        return _shown(values[0], kind) if values else None

    return cell


def _shown(value: Any, kind: str) -> Any:
    """Return the cell value; values of another type than the column's are omitted."""
    if kind == "string":
        if value is None:
            return "<no value>"
        if isinstance(value, dict | list):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        return go_value(value)
    if isinstance(value, bool) or kind == "boolean":
        return value if isinstance(value, bool) and kind == "boolean" else None
    if kind in ("integer", "number") and isinstance(value, int | float):
        return int(value) if kind == "integer" else value
    if kind == "date" and isinstance(value, str):
        try:
            return age(value)
        except TimeError:
            return "<invalid>"
    return None
