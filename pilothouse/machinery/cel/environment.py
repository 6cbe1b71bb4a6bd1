"""Compiling: from an expression and the names that it may use to a checked tree, or to cel-go's messages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from pilothouse.machinery.cel.front import types
from pilothouse.machinery.cel.front.building import RESERVED, Dialect
from pilothouse.machinery.cel.front.checker import Checker
from pilothouse.machinery.cel.front.parser import parse
from pilothouse.machinery.cel.front.source import Issue, Source
from pilothouse.machinery.cel.front.types import Type, TypeTooLarge
from pilothouse.machinery.cel.front.validators import validate
from pilothouse.machinery.cel.library.rows import parse_type
from pilothouse.machinery.cel.library.table import LATEST, functions
from pilothouse.machinery.cel.recursion import SHALLOW, room_for_recursion
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.dataclass import dataclass

_A, _B = types.parameter("A"), types.parameter("B")
_TYPE_NAMES: dict[str, Type] = {
    kind.name: types.type_of(kind)
    for kind in (
        *(types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING),
        *(types.TIMESTAMP, types.UINT, types.list_of(_A), types.map_of(_A, _B), types.TYPE),
        *(types.optional_of(_A), types.opaque("net.IP"), types.opaque("net.CIDR")),
    )
}
_OBJECT = "Object"
_PATCH_FIELDS = {"op": types.STRING, "path": types.STRING, "from": types.STRING, "value": types.DYN}


class CompilationFailed(Exception):
    """The message is cel-go's, with the place in the expression."""


@dataclass(frozen=True, slots=True)
class Compiled:
    type: str
    """Type of the expression's value as Go prints it: bool, list(int), dyn."""
    result: Type
    program: SyntaxTree


class Structs:
    """Object types by name, with the types of their fields."""

    def __init__(self, fields: Mapping[str, Mapping[str, Type]], *, patches: bool = False) -> None:
        self._fields = fields
        self._patches = patches

    def is_struct(self, name: str) -> bool:
        if name in self._fields:
            return True
        return self._patches and (name in (_OBJECT, "JSONPatch") or name.startswith(f"{_OBJECT}."))

    def field(self, struct: str, name: str) -> tuple[str, Type] | None:
        fields = self._fields.get(struct)
        if fields is None and struct == "JSONPatch":
            fields = _PATCH_FIELDS
        if fields is None:
            return name, types.DYN
        if name not in fields and name in RESERVED:
            name = f"__{name}__"
        return (name, fields[name]) if name in fields else None


class Environment:
    """The variables, types and functions that an expression may use."""

    def __init__(
        self,
        variables: Mapping[str, Type | str],
        structs: Mapping[str, Mapping[str, Type]] | None = None,
        *,
        patches: bool = False,
        bindings: bool = False,
        minor: int = LATEST,
    ) -> None:
        """`bindings`: with cel.bind(). `minor`: version of Kubernetes that must know all functions."""
        declared = {name: parse_type(kind) if isinstance(kind, str) else kind for name, kind in variables.items()}
        self._variables: dict[str, Type] = {**_TYPE_NAMES, **declared}
        self._structs = Structs(structs or {}, patches=patches)
        self._functions = functions(minor, patches=patches)
        self._dialect = Dialect(sort_by=minor >= 34, bind=bindings)

    def compile(self, expression: str) -> Compiled:
        """Raises CompilationFailed."""
        deep = len(expression) > SHALLOW
        with room_for_recursion() if deep else nullcontext():
            tree = self._checked(expression)
        return Compiled(str(tree.type), tree.type, tree)

    def _checked(self, expression: str) -> SyntaxTree:
        parsed = parse(expression, self._dialect)
        checker = Checker(self._variables, self._functions, self._structs)
        issues = parsed.issues
        if not issues:
            try:
                checker.check(parsed.root)
            except TypeTooLarge:
                checker.issues.append(Issue(0, "types are nested too deeply"))
            issues = checker.issues or validate(checker.literals)
        if issues:
            raise CompilationFailed(Source(expression).display(issues))
        return SyntaxTree(parsed.root, frozenset(checker.references), parsed.tokens > SHALLOW)
