"""The most that an expression can cost, estimated from its syntax and from the sizes that its schema allows.

Sizes are found by path: `self.list[0].name` is `self`, `list`, `@items`, `name` in the declared type.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeAlias

from pilothouse.machinery.cel.cost.sizes import (
    LIMITLESS,
    ONE,
    UNKNOWN,
    CallCost,
    Operand,
    Size,
    product,
    total,
)
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.front.tree import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Const,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
)
from pilothouse.machinery.cel.front.types import Type
from pilothouse.machinery.cel.library.costs import LIST, MAP, STRUCT
from pilothouse.machinery.cel.library.rows import Row
from pilothouse.machinery.cel.recursion import room_for_recursion
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.dataclass import dataclass

_Path: TypeAlias = tuple[str, ...]
_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
_KEY = Declared("string", 2)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Sizes of the keys and values of a list or map."""

    is_list: bool
    key: Size
    value: Size

    def __or__(self, other: _Entry) -> _Entry:
        return _Entry(self.is_list, self.key | other.key, self.value | other.value)


@dataclass(frozen=True, slots=True)
class _Local:
    path: _Path
    size: Size | None = None
    entry: _Entry | None = None


def estimated_cost(tree: SyntaxTree, declared: Declared | None) -> int:
    """`declared`: type of `self`; without it, no sizes are known."""
    with room_for_recursion() if tree.is_deep else nullcontext():
        return _Estimation(declared).cost(tree.root)


class _Estimation:
    def __init__(self, declared: Declared | None) -> None:
        self._declared = declared
        self._paths: dict[Node, _Path] = {}
        self._sizes: dict[Node, Size] = {}
        self._entries: dict[Node, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._visits: dict[type[Node], Callable[[Any], int]] = {
            Const: lambda node: 0,
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListNode: self._list,
            MapNode: self._map,
            StructNode: self._struct,
            Comprehension: self._comprehension,
        }

    def cost(self, node: Node) -> int:
        return self._visits[node.__class__](node)

    def _ident(self, node: Ident) -> int:
        local = self._local(node)
        self._paths[node] = local.path if local else (node.reference or node.name,)
        return 1

    def _select(self, node: Select) -> int:
        if node.reference is not None:
            self._paths[node] = (node.reference,)
            return 1
        cost = self.cost(node.operand)
        if node.test_only:
            return cost
        if node.operand.type.kind in ("map", "struct"):
            cost = total(cost, 1)
        self._paths[node] = (*self._path(node.operand), node.field)
        return cost

    def _call(self, node: Call) -> int:
        if node.function == "dyn":
            cost = total(1, self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return cost
        costs = [self.cost(arg) for arg in node.args]
        own = self.cost(node.target) if node.target is not None else 0
        arguments = node.args if node.target is None else [node.target, *node.args]
        operands = [self._operand(arg) for arg in arguments]
        highest, result = 0, None
        for row in node.overloads:
            estimate = self._overload(node, row, operands, costs)
            highest = max(highest, estimate.cost)
            if estimate.result is not None:
                result = estimate.result if result is None else result | estimate.result
            if row.overload in ("index_list", "index_map"):
                entry = self._entry(node.args[0])
                result = entry.value if entry else None
                part = "@items" if row.overload == "index_list" else "@values"
                self._paths[node] = (*self._path(node.args[0]), part)
            result = result if result is not None else self._size(node)
        if result is not None:
            self._sizes[node] = result
        return total(own, highest)

    def _overload(self, node: Call, row: Row, operands: list[Operand], costs: list[int]) -> CallCost:
        """Return the cost with that of the arguments, but without that of the receiver."""
        if row.overload in ("logical_or", "logical_and"):
            return CallCost(total(*costs))
        if row.overload == "conditional":
            self._note_either(node)
            return CallCost(total(costs[0], max(costs[1], costs[2])), operands[1].size | operands[2].size)
        if row.overload in ("add_string", "add_bytes", "add_list"):
            self._note_either(node)
        estimate = row.estimate(operands)
        return CallCost(total(estimate.cost, *costs), estimate.result)

    def _note_either(self, node: Call) -> None:
        one, other = self._entry(node.args[-2]), self._entry(node.args[-1])
        if one is not None and other is not None:
            self._entries[node] = one | other

    def _list(self, node: ListNode) -> int:
        cost = total(LIST, *(self.cost(each) for each in node.elements))
        self._entries[node] = _Entry(True, ONE, self._union(node.elements))
        return cost

    def _map(self, node: MapNode) -> int:
        cost = total(MAP, *(total(self.cost(entry.key), self.cost(entry.value)) for entry in node.entries))
        keys, values = [entry.key for entry in node.entries], [entry.value for entry in node.entries]
        self._entries[node] = _Entry(False, self._union(keys), self._union(values))
        return cost

    def _struct(self, node: StructNode) -> int:
        return total(STRUCT, *(self.cost(field.value) for field in node.fields))

    def _union(self, nodes: list[Node]) -> Size:
        size = Size(LIMITLESS, 0) if nodes else Size(0, 0)
        for each in nodes:
            size = size | (self._size(each) or UNKNOWN)
        return size

    def _comprehension(self, node: Comprehension) -> int:
        cost = total(self.cost(node.over), self.cost(node.start))
        self._push(node.accumulator, _Local(self._path(node.start), self._size(node.start), self._entry(node.start)))
        if node.is_binding:
            cost = total(cost, self.cost(node.result))
            self._pop(node.accumulator)
            self._copy(node, node.result)
            return cost
        variables = self._push_iteration(node)
        turn = total(self.cost(node.condition), self.cost(node.step))
        for name in variables:
            self._pop(name)
        cost = total(cost, self.cost(node.result))
        self._pop(node.accumulator)
        count = self._size(node.over) or UNKNOWN
        self._note_result(node, count)
        return total(cost, product(count.most, turn))

    def _note_result(self, node: Comprehension, count: Size) -> None:
        if type(node.start) is Const and (size := self._size(node.start)):
            self._sizes[node] = size
        elif type(node.start) in (ListNode, MapNode):
            self._sizes[node] = count
            if entry := self._entry(node.step):
                self._entries[node] = entry

    def _push_iteration(self, node: Comprehension) -> list[str]:
        entry, path = self._entry(node.over), self._path(node.over)
        is_list = entry.is_list if entry else node.over.type.kind == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entry.key if entry else None)
        value = _Local((*path, "@items" if is_list else "@values"), entry.value if entry else None)
        if node.variable2:
            self._push(node.variable, key)
            self._push(node.variable2, value)
            return [node.variable, node.variable2]
        self._push(node.variable, value if is_list else key)
        return [node.variable]

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()

    def _local(self, node: Node) -> _Local | None:
        stack = self._locals.get(node.name) if type(node) is Ident else None
        return stack[-1] if stack else None

    def _path(self, node: Node) -> _Path:
        local = self._local(node)
        return local.path if local else self._paths.get(node, ())

    def _copy(self, node: Node, source: Node) -> None:
        if size := self._size(source):
            self._sizes[node] = size
        if entry := self._entry(source):
            self._entries[node] = entry

    def _entry(self, node: Node) -> _Entry | None:
        if node in self._entries:
            return self._entries[node]
        local = self._local(node)
        return local.entry if local else None

    def _size(self, node: Node) -> Size | None:
        if node in self._sizes:
            return self._sizes[node]
        size = _literal_size(node) or self._declared_size(self._path(node)) or _scalar_size(node.type)
        if size is None and (local := self._local(node)):
            return local.size
        return size

    def _declared_size(self, path: _Path) -> Size | None:
        declared = self._declared_at(path)
        return Size(0, declared.max_elements) if declared is not None else None

    def _declared_at(self, path: _Path) -> Declared | None:
        """The first part of a path is a variable, and counts as `self`."""
        declared = self._declared if path else None
        for name in path[1:]:
            if declared is None:
                return None
            if name in ("@items", "@values"):
                declared = declared.element
            elif name == "@keys":
                declared = _KEY if declared.kind == "map" else None
            else:
                declared = declared.fields.get(name)
        return declared

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        item = self._declared_size((*path, "@items")) if path and node.type.parameters else None
        number = node.value if type(node) is Const and type(node.value) is int else None
        size = self._size(node)
        return Operand(size or UNKNOWN, node.type, item, number, is_sized=size is not None)


def _literal_size(node: Node) -> Size | None:
    match node:
        case Const():
            length = len(node.value) if isinstance(node.value, str | bytes) else 1
        case ListNode():
            length = len(node.elements)
        case MapNode():
            length = len(node.entries)
        case _:
            return None
    return Size(length, length)


def _scalar_size(kind: Type) -> Size | None:
    while kind.name == "optional_type":
        kind = kind.parameters[0]
    return ONE if kind.kind in _SCALARS else None
