"""Template pipelines: operands, function calls, and piped values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
Pipeline: TypeAlias = Callable[["Scope"], Any]
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:\\.|[^"\\])*")
    | (?P<raw>`[^`]*`)
    | (?P<number>-?\d+(?:\.\d+)?)
    | (?P<variable>\$\w*(?:\.\w+)*)
    | (?P<field>(?:\.\w+)+|\.)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<symbol>[()|])
    )""",
    re.VERBOSE,
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "nil": None}


class InvalidStage(ValueError):
    """Unsupported or invalid stage; the message names the part and the reason."""


class Scope:
    """The dot and the variables; variables are block-scoped."""

    def __init__(self, dot: Any, names: dict[str, Any], outer: Scope | None = None) -> None:
        self.dot = dot
        self._names = names
        self._outer = outer

    def inner(self, dot: Any, names: dict[str, Any] | None = None) -> Scope:
        return Scope(dot, names or {}, self)

    def get(self, name: str) -> Any:
        return self._holder(name)._names[name]

    def assign(self, name: str, value: Any, *, declares: bool) -> None:
        (self if declares else self._holder(name))._names[name] = value

    def _holder(self, name: str) -> Scope:
        scope: Scope | None = self
        while scope is not None and name not in scope._names:
            scope = scope._outer
        if scope is None:
            raise InvalidStage(f"undefined variable {name!r}")
        return scope


def parse_pipeline(text: str, functions: Functions) -> Pipeline:
    """Parse a pipeline. Raises InvalidStage."""
    parser = _Parser(text, functions)
    pipeline = parser.pipeline()
    if parser.token is not None:
        raise InvalidStage(f"unexpected {parser.token[1]!r} in {text!r}")
    return pipeline


class _Parser:
    def __init__(self, text: str, functions: Functions) -> None:
        self._text, self._position = text, 0
        self._functions = functions
        self.token: tuple[str, str] | None = None
        self._advance()

    def pipeline(self) -> Pipeline:
        value = self._command(None)
        while self.token == ("symbol", "|"):
            self._advance()
            value = self._command(value)
        return value

    def _advance(self) -> None:
        rest = self._text[self._position :]
        if not rest.strip():
            self.token = None
            return
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise InvalidStage(f"{rest.strip()!r} is not supported in a template")
        self._position = match.end()
        kind = match.lastgroup
        assert kind is not None
        self.token = (kind, match[kind])

    def _command(self, piped: Pipeline | None) -> Pipeline:
        """Parse a function call or a single operand."""
        if self.token is not None and self.token[0] == "word" and self.token[1] not in _WORDS:
            name = self.token[1]
            self._advance()
            return self._call(name, [*self._operands(), *([piped] if piped is not None else [])])
        operands = list(self._operands())
        if len(operands) != 1 or piped is not None:
            raise InvalidStage(f"{self._text!r} is not supported in a template")
        return operands[0]

    def _call(self, name: str, arguments: list[Pipeline]) -> Pipeline:
        function = self._functions.get(name)
        if function is None:
            raise InvalidStage(f"function {name!r} is not supported in a template")

        def call(scope: Scope) -> Any:
            try:
                return function(*(argument(scope) for argument in arguments))
            except (TypeError, ValueError, KeyError, IndexError) as error:
                raise InvalidStage(f"{name}: {error}") from None

        return call

    def _operands(self) -> list[Pipeline]:
        operands = []
        while self.token is not None and self.token not in (("symbol", "|"), ("symbol", ")")):
            operands.append(self._operand())
        return operands

    def _operand(self) -> Pipeline:
        assert self.token is not None
        kind, text = self.token
        self._advance()
        if kind == "symbol":
            value = self.pipeline()
            if self.token != ("symbol", ")"):
                raise InvalidStage(f"unclosed parenthesis in {self._text!r}")
            self._advance()
            return value
        if kind == "variable":
            name, *path = text.split(".")
            return _fields(lambda scope: scope.get(name), path)
        if kind == "field":
            return _fields(lambda scope: scope.dot, [part for part in text.split(".") if part])
        if kind == "word" and text not in _WORDS:
            return self._call(text, [])
        value = _literal(kind, text)
        return lambda scope: value


def _literal(kind: str, text: str) -> Any:
    if kind == "raw":
        return text[1:-1]
    if kind == "number":
        return float(text) if "." in text else int(text)
    return _WORDS[text] if kind == "word" else orjson.loads(text)


def _fields(value: Pipeline, path: list[str]) -> Pipeline:
    """Access nested fields; missing values have no fields."""

    def follow(scope: Scope) -> Any:
        found = value(scope)
        for name in path:
            if found is None:
                return None
            if not isinstance(found, Mapping):
                raise InvalidStage(f"can't evaluate field {name} in {found!r}")
            found = found.get(name)
        return found

    return follow
