"""The syntax tree of an expression. The checker notes types, references and overloads in its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pilothouse.machinery.cel.front.types import Type
    from pilothouse.machinery.cel.library.rows import Row

ACCUMULATOR: Final = "@result"
"""Variable that holds the result of a comprehension; no expression can name it."""
UNUSED: Final = "#unused"
"""Iteration variable of a comprehension that only binds a name."""


class Node:
    __slots__ = ("position", "type")

    position: int
    """Code points from the start of the text."""
    type: Type
    """Set by the checker."""

    def children(self) -> Iterator[Node]:
        return iter(())


class Const(Node):
    __slots__ = ("value",)

    def __init__(self, position: int, value: Any) -> None:
        self.position = position
        self.value = value


class Ident(Node):
    __slots__ = ("name", "reference")

    def __init__(self, position: int, name: str) -> None:
        self.position = position
        self.name = name
        self.reference: str | None = None
        """Name of the declared variable or type, set by the checker."""


class Select(Node):
    """`operand.field`, or has(operand.field) if `test_only`."""

    __slots__ = ("field", "key", "operand", "reference", "test_only")

    def __init__(self, position: int, operand: Node, field: str, *, test_only: bool = False) -> None:
        self.position = position
        self.operand = operand
        self.field = field
        self.key = field
        """Name of the field in objects; the checker may set an escaped form."""
        self.test_only = test_only
        self.reference: str | None = None
        """Name of the declared variable if the whole selection is its name."""

    def children(self) -> Iterator[Node]:
        return iter((self.operand,))


class Call(Node):
    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, position: int, function: str, args: list[Node], target: Node | None = None) -> None:
        self.position = position
        self.function = function
        self.args = args
        self.target = target
        self.overloads: list[Row] = []
        """Overloads that accept the arguments, set by the checker."""

    def children(self) -> Iterator[Node]:
        return iter(self.args if self.target is None else (self.target, *self.args))


class ListNode(Node):
    __slots__ = ("elements", "optional")

    def __init__(self, position: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        self.position = position
        self.elements = elements
        self.optional = optional
        """Indices of elements written as `?element`."""

    def children(self) -> Iterator[Node]:
        return iter(self.elements)


class Entry:
    """An entry of a map, or a field of an object (`key` is then its name)."""

    __slots__ = ("key", "optional", "position", "value")

    def __init__(self, position: int, key: Any, value: Node, *, optional: bool) -> None:
        self.position = position
        self.key = key
        self.value = value
        self.optional = optional


class MapNode(Node):
    __slots__ = ("entries",)

    def __init__(self, position: int, entries: list[Entry]) -> None:
        self.position = position
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for entry in self.entries:
            yield entry.key
            yield entry.value


class StructNode(Node):
    __slots__ = ("fields", "name")

    def __init__(self, position: int, name: str, fields: list[Entry]) -> None:
        self.position = position
        self.name = name
        self.fields = fields

    def children(self) -> Iterator[Node]:
        return iter([field.value for field in self.fields])


class Comprehension(Node):
    __slots__ = ("accumulator", "condition", "over", "result", "start", "step", "variable", "variable2")

    def __init__(
        self,
        position: int,
        over: Node,
        variables: tuple[str, str],
        accumulator: str,
        start: Node,
        *,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        self.position = position
        self.over = over
        self.variable, self.variable2 = variables
        self.accumulator = accumulator
        self.start = start
        self.condition = condition
        self.step = step
        self.result = result

    @property
    def is_binding(self) -> bool:
        """Whether the comprehension only names a value, as cel.bind() does."""
        return (
            type(self.over) is ListNode
            and not self.over.elements
            and type(self.condition) is Const
            and self.condition.value is False
        )

    def children(self) -> Iterator[Node]:
        return iter((self.over, self.start, self.condition, self.step, self.result))


class Broken(Node):
    """Stands for a part with an error that was reported."""

    __slots__ = ()

    def __init__(self, position: int) -> None:
        self.position = position


def descendants(root: Node) -> Iterator[Node]:
    """Yield all nodes, parents before their children and those from left to right."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(node.children())))


def copy(node: Node) -> Node:
    """Return a deep copy at the same positions."""
    at = node.position
    match node:
        case Const():
            return Const(at, node.value)
        case Ident():
            return Ident(at, node.name)
        case Select():
            return Select(at, copy(node.operand), node.field, test_only=node.test_only)
        case Call():
            target = None if node.target is None else copy(node.target)
            return Call(at, node.function, [copy(arg) for arg in node.args], target)
        case ListNode():
            return ListNode(at, [copy(each) for each in node.elements], node.optional)
        case MapNode():
            return MapNode(at, [_copied(entry, copy(entry.key)) for entry in node.entries])
        case StructNode():
            return StructNode(at, node.name, [_copied(field, field.key) for field in node.fields])
        case Comprehension():
            return Comprehension(
                at,
                copy(node.over),
                (node.variable, node.variable2),
                node.accumulator,
                copy(node.start),
                condition=copy(node.condition),
                step=copy(node.step),
                result=copy(node.result),
            )
    return Broken(at)


def _copied(entry: Entry, key: Any) -> Entry:
    return Entry(entry.position, key, copy(entry.value), optional=entry.optional)
