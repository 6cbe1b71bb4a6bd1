"""A type that expressions see, with the sizes that its values may have, from which costs are estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    kind: str
    """object, list, map, or the name of a CEL type."""
    min_size: int
    """Of the value's JSON."""
    max_elements: int = 0
    """Items, entries or bytes of text. Other values count as nothing, as upstream counts them."""
    fields: Mapping[str, Declared] = field(default_factory=dict)
    element: Declared | None = None
