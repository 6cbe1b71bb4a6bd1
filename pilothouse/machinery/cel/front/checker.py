"""The type checker: overload resolution, type parameters, and cel-go's messages in its order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from pilothouse.machinery.cel.front import types
from pilothouse.machinery.cel.front.source import Issue
from pilothouse.machinery.cel.front.tree import (
    Call,
    Comprehension,
    Const,
    Entry,
    Ident,
    ListNode,
    MapNode,
    Node,
    Select,
    StructNode,
)
from pilothouse.machinery.cel.front.types import Substitutions, Type, is_dyn, unwrap_optional
from pilothouse.machinery.cel.interpreter.values import UInt
from pilothouse.machinery.cel.library.rows import Row

_CONSTANTS: dict[type, Type] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
}


LITERAL_CALLS = frozenset(("format", "duration", "timestamp", "matches"))
"""Functions whose literal arguments are checked."""


class TypeProvider(Protocol):
    """The object types that an expression may name."""

    def is_struct(self, name: str) -> bool: ...

    def field(self, struct: str, name: str) -> tuple[str, Type] | None:
        """Return the field's own name, which may be an escaped form of `name`, and its type."""


class Checker:
    """Checks one expression; `issues` are what is wrong with it."""

    def __init__(
        self, variables: Mapping[str, Type], functions: Mapping[str, Sequence[Row]], provider: TypeProvider
    ) -> None:
        self.issues: list[Issue] = []
        self.references: set[str] = set()
        """Names of all variables and types that occur."""
        self.literals: list[Node] = []
        """Calls and aggregates whose literals `validators` check."""
        self._formatted = 0
        """Calls of format() around the current node; their lists may have items of any type."""
        self._variables = variables
        self._functions = functions
        self._provider = provider
        self._scopes: list[dict[str, Type]] = []
        self._substitutions = Substitutions()
        self._fresh = 0
        self._open: list[Node] = []
        """Nodes whose types have type parameters until the end."""
        self._checks: dict[type[Node], Callable[[Any], Type]] = {
            Const: lambda node: _CONSTANTS[type(node.value)],
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListNode: self._list,
            MapNode: self._map,
            StructNode: self._struct,
            Comprehension: self._comprehension,
        }

    def check(self, root: Node) -> None:
        self._check(root)
        for node in self._open:
            node.type = self._substitutions.apply(node.type, free=types.DYN)

    def _check(self, node: Node) -> Type:
        kind = node.type = self._checks[node.__class__](node)
        if kind.is_open:
            self._open.append(node)
        return kind

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(position, message))

    def _undeclared(self, position: int, name: str) -> Type:
        self._report(position, f"undeclared reference to '{name}' (in container '')")
        return types.ERROR

    def _lookup(self, name: str) -> tuple[str, Type] | None:
        """Return a variable's full name and type; a type's own type is type(T)."""
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return name, scope[name]
        kind = self._variables.get(name)
        if kind is None and self._provider.is_struct(name):
            kind = types.type_of(types.struct(name))
        if kind is None:
            return None
        self.references.add(name)
        return name, kind

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node.name)
        if found is None:
            return self._undeclared(node.position, node.name)
        node.reference, kind = found
        return kind

    def _select(self, node: Select) -> Type:
        name = _qualified_name(node)
        found = self._lookup(name) if name else None
        if found is not None:
            node.reference, kind = found
            return kind
        kind = self._selected(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else self._substitutions.apply(kind)

    def _selected(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        target, was_optional = unwrap_optional(self._substitutions.apply(self._check(operand)))
        result = types.ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            key, result = self._field(node.position, target.name, field)
            if type(node) is Select:
                node.key = key
        elif target.kind == "param":
            self._substitutions.assignable(types.DYN, target)
            result = types.DYN
        else:
            if target.kind not in ("dyn", "any", "error"):
                self._report(node.position, f"type '{target.text}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if was_optional or optional else result

    def _field(self, position: int, struct: str, field: str) -> tuple[str, Type]:
        if not self._provider.is_struct(struct):
            self._report(position, f"unexpected failed resolution of '{struct}'")
            return field, types.ERROR
        found = self._provider.field(struct, field)
        if found is None:
            self._report(position, f"undefined field '{field}'")
            return field, types.ERROR
        return found

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self._optional_selection(node)
        if node.function in LITERAL_CALLS:
            self.literals.append(node)
            if node.function == "format":
                self._formatted += 1
                kind = self._checked_call(node)
                self._formatted -= 1
                return kind
        return self._checked_call(node)

    def _checked_call(self, node: Call) -> Type:
        for arg in node.args:
            self._check(arg)
        if node.target is None:
            name = node.function.removeprefix(".")
            rows = self._functions.get(name)
            if rows is None:
                return self._undeclared(node.position, node.function)
            node.function = name
            return self._resolve(node, rows)
        prefix = _qualified_name(node.target)
        if prefix:
            name = f"{prefix}.{node.function}".removeprefix(".")
            rows = self._functions.get(name)
            if rows is not None:
                node.function, node.target = name, None
                return self._resolve(node, rows)
        self._check(node.target)
        rows = self._functions.get(node.function)
        if rows is None:
            return self._undeclared(node.position, node.function)
        return self._resolve(node, rows)

    def _optional_selection(self, node: Call) -> Type:
        operand, field = node.args
        assert type(field) is Const
        field.type = types.STRING
        node.overloads = [self._functions["_?._"][0]]
        kind = self._selected(node, operand, field.value, optional=True)
        return self._substitutions.apply(kind)

    def _resolve(self, node: Call, rows: Sequence[Row]) -> Type:
        if node.function in ("_&&_", "_||_"):
            return self._logical(node, rows)
        is_member = node.target is not None
        given = [arg.type for arg in node.args]
        if node.target is not None:
            given.insert(0, node.target.type)
        count, result, chosen = len(given), None, []
        for row in rows:
            if row.is_member is not is_member or len(row.parameters) != count:
                if row.is_generic:
                    self._fresh += 1
                continue
            parameters, row_result = row.parameters, row.result
            if row.is_generic:
                parameters, row_result, self._fresh = _instantiated(row, self._fresh)
            if not self._substitutions.all_assignable(given, parameters):
                continue
            chosen.append(row)
            kind = self._substitutions.apply(row_result)
            if result is None:
                result = kind
            elif not is_dyn(result) and kind is not result:
                result = types.DYN
        if result is None:
            self._no_overload(node, given)
            return types.ERROR
        node.overloads = chosen
        return result

    def _no_overload(self, node: Call, given: list[Type]) -> None:
        shown = [self._substitutions.apply(kind, free=types.DYN).text for kind in given]
        target = f"{shown.pop(0)}." if node.target is not None else ""
        signature = f"{target}({', '.join(shown)})"
        self._report(node.position, f"found no matching overload for '{node.function}' applied to '{signature}'")

    def _logical(self, node: Call, rows: Sequence[Row]) -> Type:
        result = types.BOOL
        for arg in node.args:
            if not self._substitutions.assignable(arg.type, types.BOOL):
                self._mismatch(arg.position, types.BOOL, arg.type)
                result = types.ERROR
        if result is types.BOOL:
            node.overloads = list(rows)
        return result

    def _mismatch(self, position: int, expected: Type, found: Type) -> None:
        self._report(position, f"expected type '{expected.text}' but found '{found.text}'")

    def _new_parameter(self) -> Type:
        self._fresh += 1
        return types.parameter(f"_var{self._fresh - 1}")

    def _unwrapped(self, value: Node) -> Type:
        """Return the type within an entry that is written as optional."""
        inner, is_optional = unwrap_optional(value.type)
        if not is_optional and not is_dyn(inner):
            self._mismatch(value.position, types.optional_of(inner), inner)
        return inner

    def _list(self, node: ListNode) -> Type:
        if not self._formatted and len(node.elements) > 1:
            self.literals.append(node)
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            kind = self._check(element)
            if index in node.optional:
                kind = self._unwrapped(element)
            joined = self._joined(joined, kind)
        return types.list_of(self._new_parameter() if joined is None else joined)

    def _joined(self, before: Type | None, kind: Type) -> Type:
        if before is None:
            return kind
        # Entries of different types make the aggregate dynamic; `validators` refuse it unless it is formatted.
        return types.most_general(before, kind) if self._substitutions.assignable(before, kind) else types.DYN

    def _map(self, node: MapNode) -> Type:
        if not self._formatted and len(node.entries) > 1:
            self.literals.append(node)
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._joined(keys, self._check(entry.key))
            kind = self._check(entry.value)
            if entry.optional:
                kind = self._unwrapped(entry.value)
            values = self._joined(values, kind)
        if keys is None or values is None:
            keys, values = self._new_parameter(), self._new_parameter()
        return types.map_of(keys, values)

    def _struct(self, node: StructNode) -> Type:
        found = self._lookup(node.name)
        if found is None:
            return self._undeclared(node.position, node.name)
        node.name, kind = found
        result = types.ERROR
        name = node.name
        if kind.kind != "type":
            if kind.kind != "error":
                self._report(node.position, f"'{kind.name}' is not a type")
        elif kind.parameters and kind.parameters[0].kind == "struct":
            result = kind.parameters[0]
            name = result.name
        elif kind.parameters and kind.parameters[0].kind in ("duration", "timestamp", "null"):
            result = kind.parameters[0]
        else:
            self._report(
                node.position, f"'{kind.parameters[0].name if kind.parameters else 'type'}' is not a message type"
            )
        for field in node.fields:
            self._check_field(name, field)
        return result

    def _check_field(self, struct: str, field: Entry) -> None:
        kind = self._check(field.value)
        field.key, expected = self._field(field.position, struct, field.key)
        if field.optional:
            kind = self._unwrapped(field.value)
        if not self._substitutions.assignable(expected, kind):
            said = f"expected type of field '{field.key}' is '{expected.text}' but provided type is '{kind.text}'"
            self._report(field.position, said)

    def _comprehension(self, node: Comprehension) -> Type:
        over = self._substitutions.apply(self._check(node.over))
        start = self._check(node.start)
        self._scopes.append({node.accumulator: start})
        first, second = self._iteration_types(node, over)
        variables = {node.variable: first}
        if node.variable2:
            variables[node.variable2] = second
        self._scopes.append(variables)
        for part, expected in ((node.condition, types.BOOL), (node.step, start)):
            kind = self._check(part)
            if not self._substitutions.assignable(expected, kind):
                self._mismatch(part.position, expected, kind)
        self._scopes.pop()
        result = self._check(node.result)
        self._scopes.pop()
        return self._substitutions.apply(result)

    def _iteration_types(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            return (types.INT, over.parameters[0]) if node.variable2 else (over.parameters[0], types.DYN)
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in ("dyn", "error", "param"):
            self._substitutions.assignable(types.DYN, over)
            return types.DYN, types.DYN
        why = "cannot be range of a comprehension (must be list, map, or dynamic)"
        self._report(node.over.position, f"expression of type '{over.text}' {why}")
        return types.ERROR, types.ERROR


@lru_cache(maxsize=4096)
def _instantiated(row: Row, number: int) -> tuple[tuple[Type, ...], Type, int]:
    """Return parameters and result with fresh type parameters, counted from `number`, and the next number."""
    fresh: dict[Type, Type] = {}

    def renamed(kind: Type) -> Type:
        if not kind.is_open:
            return kind
        if kind.kind == "param":
            if kind not in fresh:
                fresh[kind] = types.parameter(f"_var{number + len(fresh)}")
            return fresh[kind]
        return types.rebuilt(kind, tuple([renamed(each) for each in kind.parameters]))

    parameters = tuple([renamed(each) for each in row.parameters])
    return parameters, renamed(row.result), number + len(fresh)


def _qualified_name(node: Node) -> str:
    """Return `a.b.c` for a chain of plain selections, and "" for all else."""
    parts: list[str] = []
    while type(node) is Select and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if type(node) is not Ident:
        return ""
    return ".".join((node.name, *reversed(parts))) if parts else node.name
