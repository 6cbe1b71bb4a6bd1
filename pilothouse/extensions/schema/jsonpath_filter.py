"""JSONPath filter conditions: `@.type=="Ready"`, `@.port > 80`, `@.name`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

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
    found = _PARTS.fullmatch(text.strip())
    if found is None:
        exists = _operand(text.strip(), compile_path)
        return lambda item: bool(exists(item))
    left, right = _operand(found[1].strip(), compile_path), _operand(found[3].strip(), compile_path)
    compare = _OPERATORS[found[2]]
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
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (a, b))
    if not numbers and type(a) is not type(b):
        return compare is operator.ne
    try:
        return compare(a, b)
    except TypeError:
        return False
