"""An expression that was parsed and checked."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.cel.front.tree import Call, Node, descendants
from pilothouse.machinery.cel.front.types import Type
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SyntaxTree:
    root: Node
    references: frozenset[str]
    """Names of all variables and types that occur."""
    is_deep: bool
    """Whether walking the tree may exceed Python's usual recursion limit."""

    @property
    def type(self) -> Type:
        return self.root.type

    def uses(self, variable: str) -> bool:
        return variable in self.references

    def calls(self) -> Iterator[Call]:
        """Yield all calls, outer calls first."""
        return (node for node in descendants(self.root) if type(node) is Call)
