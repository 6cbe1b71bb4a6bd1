"""The overlay: fields and structs that are ours, and defaults, as `overlay.toml` declares them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

SHIPPED = Path(__file__).parent / "overlay.toml"

T = TypeVar("T", "AddedField", "AddedStruct")


class OverlayError(ValueError):
    """The overlay declares what cannot be."""


@dataclass(frozen=True, kw_only=True)
class AddedField:
    """One field, as the head of `overlay.toml` explains."""

    of: str
    name: str
    number: int
    type: str
    description: str
    required: bool = False
    pointer: bool = False
    list_type: str = ""
    map_keys: list[str] = field(default_factory=list)
    map_type: str = ""
    patch_strategy: str = ""
    patch_merge_key: str = ""
    default: Any = None
    go_type: str = ""


@dataclass(frozen=True, kw_only=True)
class AddedStruct:
    name: str
    description: str
    map_type: str = ""


@dataclass(frozen=True)
class Overlay:
    """`defaults` are by definition and field, those of added fields among them."""

    structs: list[AddedStruct]
    fields: list[AddedField]
    defaults: dict[str, Any]


def read_overlay(path: Path) -> Overlay:
    """Raises OverlayError for a table that lacks something or has what nobody reads."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    structs = [_read(AddedStruct, "struct", table) for table in tables.pop("struct", [])]
    added = [_read(AddedField, "field", table) for table in tables.pop("field", [])]
    defaults = tables.pop("defaults", {})
    if tables:
        raise OverlayError(f"{path.name}: unknown: {', '.join(tables)}")
    places = [f"{row.of}.{row.name}" for row in added] + [row.name for row in structs]
    if twice := {place for place in places if places.count(place) > 1}:
        raise OverlayError(f"{path.name}: declared twice: {', '.join(sorted(twice))}")
    own = {f"{row.of}.{row.name}": row.default for row in added if row.default is not None}
    return Overlay(structs, added, defaults | own)


def _read(kind: type[T], word: str, table: dict[str, Any]) -> T:
    known = {each.name for each in fields(kind)}
    if unknown := table.keys() - known:
        raise OverlayError(f"[[{word}]] {table.get('name')}: unknown: {', '.join(sorted(unknown))}")
    try:
        return kind(**table)
    except TypeError as error:
        raise OverlayError(f"[[{word}]] {table.get('name')}: {error}") from None
