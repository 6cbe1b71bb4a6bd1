"""JSONPath of printer columns: fields, indexes, slices, unions, wildcards, filters and recursive descent.

A path is compiled into steps, each from the current values to the next values. Missing fields are skipped; values of
the wrong shape find nothing. Filters: `@.type=="Ready"`, `@.port > 80`, `@.name`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Protocol, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid

Step: TypeAlias = Callable[[list[Any]], list[Any]]

_FIELD = re.compile(r"(?:\\.|[^\s.\[\]{}|,()'\"@$*\\])+")
_SLICE = re.compile(r"(-?\d*)(?:(:)(-?\d*))?(?:(:)(-?\d*))?")
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")


class InvalidJsonPath(ValueError):
    """The path cannot be parsed."""


class _Unwalkable(Exception):
    """The value has the wrong shape: not a list, or too short."""


@dataclass(frozen=True, slots=True, eq=False)
class JsonPath:
    text: str
    steps: tuple[Step, ...]

    def find(self, obj: Any) -> list[Any]:
        try:
            return reduce(lambda values, step: step(values), self.steps, [obj])
        except _Unwalkable:
            return []


def compile_path(text: str) -> JsonPath:
    """Compile a path. Raises InvalidJsonPath."""
    return JsonPath(text, tuple(_steps(text)))


def validate_simple_path(text: str, path: Path) -> Errors:
    """Validate a path of a definition as upstream does."""
    if not text:
        yield invalid(path, text, "must not be empty")
    elif not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            yield _descend
            at += 1 if text[at + 2 : at + 3] not in ("[", "") else 2
        elif text.startswith(".", at):
            at += 1
            if text.startswith("*", at):
                yield _all_values
                at += 1
            elif match := _FIELD.match(text, at):
                yield _field(re.sub(r"\\(.)", r"\1", match[0]))
                at = match.end()
        elif text.startswith("[", at):
            end = _closing(text, at)
            yield _brackets(text[at + 1 : end].strip())
            at = end + 1
        elif text[at] in "@$ ":
            at += 1
        elif match := _FIELD.match(text, at):
            yield _field(match[0])
            at = match.end()
        else:
            raise InvalidJsonPath(f"unrecognized character in action: {text[at]!r}")


def _closing(text: str, start: int) -> int:
    """Return the position of the closing bracket, skipping strings and nested brackets."""
    depth, at = 0, start
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    raise InvalidJsonPath("unterminated array")


def _brackets(inner: str) -> Step:
    if inner.startswith("?(") and inner.endswith(")"):
        condition = compile_filter(inner[2:-1], compile_path)
        return lambda values: [item for value in values for item in _list(value) if condition(item)]
    if inner == "*":
        return lambda values: [item for value in values for item in _list(value)]
    if quoted := _QUOTED.fullmatch(inner):
        return _field(re.sub(r"\\(.)", r"\1", quoted[1] if quoted[1] is not None else quoted[2]))
    if "," in inner:
        parts = [_brackets(part.strip()) for part in inner.split(",")]
        return lambda values: [found for value in values for part in parts for found in part([value])]
    if (match := _SLICE.fullmatch(inner)) and inner:
        start, end, step = (int(match[group]) if match[group] else None for group in (1, 3, 5))
        if match[2] is None:
            assert start is not None
            return lambda values: [_item(value, start) for value in values if value is not None]
        if step is not None and step <= 0:
            raise InvalidJsonPath("step must be > 0")
        return lambda values: [item for value in values for item in _list(value)[start:end:step]]
    raise InvalidJsonPath(f"invalid array index {inner}")


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Unwalkable
    return value


def _item(value: Any, index: int) -> Any:
    items = _list(value)
    if not -len(items) <= index < len(items):
        raise _Unwalkable
    return items[index]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _all_values(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _descend(values: list[Any]) -> list[Any]:
    """Return the values and all their descendants."""
    return [found for value in values for found in (value, *_descend(_children(value)))]


Condition: TypeAlias = Callable[[Any], bool]
_Operand: TypeAlias = Callable[[Any], list[Any]]


class _Findable(Protocol):
    def find(self, obj: Any) -> list[Any]: ...


_PARTS = re.compile(r"""((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^=!<>])+)\s*(==|!=|<=|>=|<|>)\s*(.+)""")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def compile_filter(text: str, compile_path: Callable[[str], _Findable]) -> Condition:
    match = _PARTS.fullmatch(text.strip())
    if match is None:
        exists = _operand(text.strip(), compile_path)
        return lambda item: bool(exists(item))
    left, right = _operand(match[1].strip(), compile_path), _operand(match[3].strip(), compile_path)
    compare = _OPERATORS[match[2]]
    return lambda item: _holds(compare, left(item), right(item))


def _operand(text: str, compile_path: Callable[[str], _Findable]) -> _Operand:
    if text.startswith("@"):
        path = compile_path(text[1:])
        return path.find
    value = _literal(text)
    return lambda item: [value]


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _holds(compare: Callable[[Any, Any], bool], left: list[Any], right: list[Any]) -> bool:
    """Compare single values of the same kind; other operands do not match."""
    if len(left) != 1 or len(right) != 1:
        return False
    a, b = left[0], right[0]
    numbers = all(isinstance(operand, int | float) and not isinstance(operand, bool) for operand in (a, b))
    if not numbers and type(a) is not type(b):
        return compare is operator.ne
    try:
        return compare(a, b)
    except TypeError:
        return False
