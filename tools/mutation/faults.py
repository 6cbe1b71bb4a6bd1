"""Every small fault that can be put into a source file, one place at a time.

Faults are made inside functions only, where a test reaches a line or does not. What only a person reads (log calls,
docstrings, `__repr__`) is left alone: nobody wants a test that holds it in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_LOGGERS = ("logger", "log", "_log", "_logger", "logging", "warnings")


@dataclass(frozen=True)
class Fault:
    path: Path
    line: int
    statement: int  # the line where its statement begins
    kind: str
    before: str
    after: str
    start: int  # in bytes, as ast counts columns
    end: int

    def applied_to(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}  {self.kind}: {before[:70]}  →  {after[:70]}"


def faults_in(path: Path, root: Path) -> Iterator[Fault]:
    source = (root / path).read_bytes()
    yield from _Finder(path, source).of_module(ast.parse(source))


class _Finder:
    def __init__(self, path: Path, source: bytes) -> None:
        self._path = path
        self._source = source
        self._statement = 0
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def of_module(self, tree: ast.AST) -> Iterator[Fault]:
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name != "__repr__":
                    for statement in node.body:
                        yield from self._of(statement)
            else:
                yield from self.of_module(node)

    def _of(self, node: ast.AST) -> Iterator[Fault]:
        if _is_for_people(node):
            return
        if isinstance(node, ast.stmt):
            self._statement = node.lineno
        yield from self._at(node)
        for child in ast.iter_child_nodes(node):
            if not _is_annotation(child, node):
                yield from self._of(child)

    def _at(self, node: ast.AST) -> Iterator[Fault]:
        match node:
            case ast.If() | ast.While() | ast.IfExp():
                yield self._fault("condition inverted", node.test, f"(not ({self._text(node.test)}))")
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    yield self._fault("condition inverted", condition, f"(not ({self._text(condition)}))")
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                swapped = f"{self._text(left)} {_COMPARISONS[type(operator)]} {self._text(right)}"
                yield self._fault("comparison", node, swapped)
            case ast.BoolOp():
                word = " or " if isinstance(node.op, ast.And) else " and "
                yield self._fault("and/or", node, f"({word.join(f'({self._text(value)})' for value in node.values)})")
            case ast.UnaryOp(op=ast.Not()):
                yield self._fault("not dropped", node, f"({self._text(node.operand)})")
            case ast.Constant(value=bool()):
                yield self._fault("constant", node, str(not node.value))
            case ast.Constant(value=int() as number):
                yield self._fault("constant", node, str(number + 1))
            case ast.Return(value=ast.expr() as value) if not _is_none(value):
                yield self._fault("returned", value, "None")
            case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
                yield self._fault("statement dropped", node, "pass")
            case ast.Expr(value=ast.Call() | ast.Await()):
                yield self._fault("statement dropped", node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._fault("statement dropped", node, "pass")

    def _fault(self, kind: str, node: ast.expr | ast.stmt, after: str) -> Fault:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        end = self._line_starts[node.end_lineno - 1] + node.end_col_offset
        before = self._source[start:end].decode()
        return Fault(self._path, node.lineno, self._statement, kind, before, after, start, end)

    def _text(self, node: ast.expr) -> str:
        return ast.get_source_segment(self._source.decode(), node) or ""


def _is_for_people(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in _LOGGERS
    ) or (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")


def _is_annotation(child: ast.AST, parent: ast.AST) -> bool:
    return child in (getattr(parent, "annotation", None), getattr(parent, "returns", None))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
