"""Types of schemas as expressions see them, with the sizes that values may have, from which costs are estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pilothouse.machinery.cel.front import types
from pilothouse.machinery.cel.front.types import Type
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    kind: str
    """object, list, map, or the name of a CEL type."""
    min_size: int
    """Bytes of the smallest JSON."""
    max_elements: int = 0
    """Items, entries or bytes of text; 0 for all other values, as upstream counts them."""
    fields: Mapping[str, Declared] = field(default_factory=dict)
    element: Declared | None = None


class DeclaredTypes:
    """CEL types of declared types; objects are named after their place below `name`."""

    def __init__(self) -> None:
        self.structs: dict[str, dict[str, Type]] = {}

    def add(self, declared: Declared, name: str) -> Type:
        if declared.kind == "object":
            self.structs[name] = {key: self.add(child, f"{name}.{key}") for key, child in declared.fields.items()}
            return types.struct(name)
        if declared.element is not None and declared.kind == "list":
            return types.list_of(self.add(declared.element, f"{name}.@idx"))
        if declared.element is not None and declared.kind == "map":
            return types.map_of(types.STRING, self.add(declared.element, f"{name}.@elem"))
        return types.SIMPLE[declared.kind]
