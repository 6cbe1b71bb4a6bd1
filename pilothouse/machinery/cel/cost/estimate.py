"""The most that an expression can cost, estimated from its syntax and from the sizes that its schema allows.

Sizes are found by path: `self.list[0].name` is `self`, `list`, `@items`, `name` in the declared type.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pilothouse.machinery.cel.cost.call_costs import CallCost, Operand, call_cost, operator_cost
from pilothouse.machinery.cel.cost.list_costs import list_call_cost
from pilothouse.machinery.cel.cost.sizes import LIMITLESS, ONE, UNKNOWN, Size, product, total
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.syntax import ACCUMULATORS, SyntaxTree, is_binding, kind_of
from pilothouse.machinery.dataclass import dataclass

_Path: TypeAlias = tuple[str, ...]
_TEXTS = (5, 6)
_SCALARS = (1, 2, 3, 4)
_TIMES = (2, 3)
_KEY = Declared("string", 2)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The sizes of what a list or map contains."""

    is_list: bool
    key: Size
    value: Size


@dataclass(frozen=True, slots=True)
class _Local:
    path: _Path
    size: Size | None = None
    entry: _Entry | None = None


def estimated_cost(tree: SyntaxTree, declared: Declared) -> int:
    return _Estimation(tree, declared).cost(tree.root)


class _Estimation:
    def __init__(self, tree: SyntaxTree, declared: Declared) -> None:
        self._tree = tree
        self._declared = declared
        self._paths: dict[int, _Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._visit = {
            "const_expr": lambda e: 0,
            "ident_expr": self._ident,
            "select_expr": self._select,
            "call_expr": self._call,
            "list_expr": self._list,
            "struct_expr": self._struct,
            "comprehension_expr": self._comprehension,
        }

    def cost(self, expression: Any) -> int:
        visit = self._visit.get(kind_of(expression))
        return visit(expression) if visit else 0

    def _ident(self, e: Any) -> int:
        local = self._local(e.ident_expr.name)
        self._paths[e.id] = local.path if local else (e.ident_expr.name,)
        return 1

    def _select(self, e: Any) -> int:
        select = e.select_expr
        cost = self.cost(select.operand)
        if select.test_only:
            return cost
        kind = self._tree.type_of(select.operand)
        if kind is not None and (kind.HasField("map_type") or kind.HasField("message_type")):
            cost = total(cost, 1)
        self._paths[e.id] = (*self._path(select.operand), select.field)
        return cost

    def _call(self, e: Any) -> int:
        call = e.call_expr
        costs = [self.cost(arg) for arg in call.args]
        if call.function == "dyn" and call.args:
            self._copy(e, call.args[0])
            return total(1, *costs)
        target = call.target if call.HasField("target") else None
        own = self.cost(target) if target is not None else 0
        overloads = self._tree.overloads(e)
        estimates = [self._overload_cost(e, overload, costs) for overload in overloads]
        if not estimates:
            return 0
        self._note_result(e, overloads, [each.result for each in estimates if each.result is not None])
        if {"conditional", "add_list"} & set(overloads):
            self._note_entries_of_both(e, call.args[-2], call.args[-1])
        return total(own, max(each.cost for each in estimates))

    def _overload_cost(self, e: Any, overload: str, costs: list[int]) -> CallCost:
        call = e.call_expr
        target = self._operand(call.target) if call.HasField("target") else None
        args = [self._operand(arg) for arg in call.args]
        found = list_call_cost(overload, target, args) or call_cost(call.function, overload, target, args)
        if found is not None:
            return CallCost(total(found.cost, *costs), found.result)
        return operator_cost(overload, target, args, costs)

    def _note_result(self, e: Any, overloads: list[str], results: list[Size]) -> None:
        size = None
        for result in results:
            size = result if size is None else size | result
        args = e.call_expr.args
        if args and ("index_list" in overloads or "index_map" in overloads):
            entry = self._entry(args[0])
            size = entry.value if entry else None
            self._paths[e.id] = (*self._path(args[0]), "@items" if "index_list" in overloads else "@values")
        size = size if size is not None else self._size(e)
        if size is not None:
            self._sizes[e.id] = size

    def _note_entries_of_both(self, e: Any, one: Any, other: Any) -> None:
        a, b = self._entry(one), self._entry(other)
        if a is not None and b is not None:
            self._entries[e.id] = _Entry(a.is_list, a.key | b.key, a.value | b.value)

    def _list(self, e: Any) -> int:
        elements = e.list_expr.elements
        cost = total(10, *(self.cost(each) for each in elements))
        self._entries[e.id] = _Entry(True, ONE, self._union(list(elements)))
        return cost

    def _struct(self, e: Any) -> int:
        entries = e.struct_expr.entries
        parts = [part for entry in entries for part in self._entry_parts(entry)]
        cost = total(*(self.cost(part) for part in parts))
        if e.struct_expr.message_name:
            return total(cost, 40)
        keys, values = [entry.map_key for entry in entries], [entry.value for entry in entries]
        self._entries[e.id] = _Entry(False, self._union(keys), self._union(values))
        return total(cost, 30)

    @staticmethod
    def _entry_parts(entry: Any) -> list[Any]:
        return [entry.map_key, entry.value] if entry.HasField("map_key") else [entry.value]

    def _union(self, expressions: list[Any]) -> Size:
        size = Size(LIMITLESS, 0) if expressions else Size(0, 0)
        for each in expressions:
            size = size | (self._size(each) or UNKNOWN)
        return size

    def _comprehension(self, e: Any) -> int:
        loop = e.comprehension_expr
        cost = total(self.cost(loop.iter_range), self.cost(loop.accu_init))
        self._push(loop.accu_var, self._as_local(loop.accu_init))
        if is_binding(loop):
            cost = total(cost, self.cost(loop.result))
            self._pop(loop.accu_var)
            self._copy(e, loop.result)
            return cost
        variables = self._push_iteration(loop)
        each = total(self.cost(loop.loop_condition), self.cost(loop.loop_step))
        for name in variables:
            self._pop(name)
        cost = total(cost, self.cost(loop.result))
        self._pop(loop.accu_var)
        count = self._size(loop.iter_range) or UNKNOWN
        self._note_loop_result(e, loop, count)
        return total(cost, product(count.most, each))

    def _note_loop_result(self, e: Any, loop: Any, count: Size) -> None:
        kind = kind_of(loop.accu_init)
        if kind == "const_expr" and (size := self._size(loop.accu_init)):
            self._sizes[e.id] = size
        elif kind in ("list_expr", "struct_expr"):
            self._sizes[e.id] = count
            if entry := self._entry(loop.loop_step):
                self._entries[e.id] = entry

    def _push_iteration(self, loop: Any) -> list[str]:
        entry, path = self._entry(loop.iter_range), self._path(loop.iter_range)
        is_list = entry.is_list if entry else self._is_list(self._tree.type_of(loop.iter_range), path)
        key = _Local((*path, "@indices" if is_list else "@keys"), entry.key if entry else None)
        value = _Local((*path, "@items" if is_list else "@values"), entry.value if entry else None)
        if loop.iter_var2:
            self._push(loop.iter_var, key)
            self._push(loop.iter_var2, value)
            return [loop.iter_var, loop.iter_var2]
        self._push(loop.iter_var, value if is_list else key)
        return [loop.iter_var]

    def _as_local(self, e: Any) -> _Local:
        return _Local(self._path(e), self._size(e), self._entry(e))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, e: Any) -> _Path:
        if kind_of(e) == "ident_expr" and (local := self._local(e.ident_expr.name)):
            return local.path
        return self._paths.get(e.id, ())

    def _copy(self, e: Any, source: Any) -> None:
        if size := self._size(source):
            self._sizes[e.id] = size
        if entry := self._entry(source):
            self._entries[e.id] = entry

    def _entry(self, e: Any) -> _Entry | None:
        if e.id in self._entries:
            return self._entries[e.id]
        local = self._local(e.ident_expr.name) if kind_of(e) == "ident_expr" else None
        return local.entry if local else None

    def _size(self, e: Any) -> Size | None:
        if e.id in self._sizes:
            return self._sizes[e.id]
        size = _literal_size(e) or self._declared_size(self._path(e)) or _scalar_size(self._tree.type_of(e))
        if size is None and kind_of(e) == "ident_expr" and (local := self._local(e.ident_expr.name)):
            return local.size
        return size

    def _declared_size(self, path: _Path) -> Size | None:
        node = self._declared_at(path)
        return Size(0, node.max_elements) if node is not None else None

    def _declared_at(self, path: _Path) -> Declared | None:
        """The first part of a path is a variable, and counts as `self`."""
        node: Declared | None = self._declared if path else None
        for name in path[1:]:
            if node is None:
                return None
            if name in ("@items", "@values"):
                node = node.element
            elif name == "@keys":
                node = _KEY if node.kind == "map" else None
            else:
                node = node.fields.get(name)
        return node

    def _operand(self, e: Any) -> Operand:
        path = self._path(e)
        if path and path[0] in ACCUMULATORS:
            path = ()
        kind = self._tree.type_of(e)
        item, is_text = None, False
        if self._is_list(kind, path):
            element = self._declared_at((*path, "@items")) if path else None
            item = Size(0, element.max_elements) if element is not None else UNKNOWN
            is_text = kind.list_type.elem_type.primitive in _TEXTS or (
                element is not None and element.kind in ("string", "bytes")
            )
        number = e.const_expr.int64_value if e.HasField("const_expr") and e.const_expr.HasField("int64_value") else None
        return Operand(self._size(e) or UNKNOWN, item, is_text, number, kind.message_type if kind is not None else "")

    def _is_list(self, kind: Any, path: _Path) -> bool:
        """The checker's types do not know lists within lists; the declared ones do."""
        if kind is not None and not kind.HasField("dyn"):
            return bool(kind.HasField("list_type"))
        declared = self._declared_at(path)
        return declared is not None and declared.kind == "list"


def _literal_size(e: Any) -> Size | None:
    kind = kind_of(e)
    if kind == "const_expr":
        constant = e.const_expr
        length = 1
        if constant.HasField("string_value"):
            length = len(constant.string_value)
        elif constant.HasField("bytes_value"):
            length = len(constant.bytes_value)
        return Size(length, length)
    if kind == "list_expr":
        return Size(len(e.list_expr.elements), len(e.list_expr.elements))
    if kind == "struct_expr" and not e.struct_expr.message_name:
        return Size(len(e.struct_expr.entries), len(e.struct_expr.entries))
    return None


def _scalar_size(kind: Any) -> Size | None:
    if kind is None:
        return None
    is_scalar = kind.primitive in _SCALARS or kind.wrapper in _SCALARS or kind.well_known in _TIMES
    return ONE if is_scalar else None
