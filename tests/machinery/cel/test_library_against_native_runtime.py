"""Every function of the library that Google's C++ implementation of CEL has, too, agrees with it.

Calls are generated from the table of functions, with arguments of the declared types that are literals or calls again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from native_cel import EXTENSIONS

from pilothouse.machinery.cel.environment import CompilationFailed, Environment
from pilothouse.machinery.cel.front.types import Type as CelType
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, from_key
from pilothouse.machinery.cel.library.rows import Row
from pilothouse.machinery.cel.library.table import functions
from pilothouse.machinery.cel.program import Program, ProgramFailed

cel = pytest.importorskip("cel_expr_python.cel")

NATIVE = cel.NewEnv(config=cel.NewEnvConfigFromYaml(EXTENSIONS), variables={})
OURS = Environment({})

Choose = Callable[[Sequence[Any]], Any]
"""Picks one of several options."""
LITERALS = {
    "bool": ["true", "false"],
    "int": ["0", "1", "-3", "7", "9223372036854775807", "-9223372036854775808"],
    "uint": ["0u", "1u", "7u", "18446744073709551615u"],
    "double": ["0.5", "1.5", "-2.25", "1e300", "3.0"],
    "string": ["''", "'x'", "'añb'", "'7'", "'-1.5'", "'a,b,,c'", "'true'", "' Tab\\t'", "'1h5m'"],
    "bytes": ["b''", "b'abc'", "b'\\xff\\x00'"],
    "google.protobuf.Duration": ["duration('0s')", "duration('1h30m')", "duration('-1.5s')"],
    "google.protobuf.Timestamp": ["timestamp('1970-01-01T00:00:00Z')", "timestamp('2024-02-29T23:59:59.5Z')"],
}
"""No double is 0.0: only cel-go refuses to order NaN."""
VALUES = ("bool", "int", "string", "double")
KEYS = ("bool", "int", "string")
"""C++ refuses doubles as keys."""
OPERATORS = {name: name.strip("_") for name in functions() if name[:1] == "_" == name[-1:] and name.strip("_") != "?_:"}

DISAGREEMENTS = {
    "duration_to_int64": "nanoseconds in cel-go, absent in C++",
    "duration_to_milliseconds": "all milliseconds of the duration in cel-go, those of the last second in C++",
    "double_to_string": "C++ writes inf where cel-go writes +Inf",
    "duration_to_string": "C++ writes 1.500s where cel-go writes 1.5s",
    "timestamp_to_string": "C++ writes .500Z where cel-go writes .5Z",
    "string_format": "cel-go rejects arguments that the template does not use",
    "string_index_of_string_int": "an offset behind the end finds nothing in cel-go, and is an error in C++",
    "string_last_index_of_string_int": "as indexOf()",
    "string_substring_int_int": "C++ rejects an end that is the length",
    "string_split_string": "nothing, split into characters, has no items in cel-go, and one in C++",
    "string_split_string_int": "as above",
    "optional_list_index_int": "an index out of bounds gives an optional without value in cel-go",
    "list_flatten_int": "the items of a list are of one type in kube-apiserver",
    "lists_range": "a negative size gives an empty list in cel-go",
    "type": "the C++ implementation does not hand types to Python",
}
"""Overloads on which cel-go, and with it kube-apiserver, and the C++ implementation differ."""


def render(row: Row, arguments: list[str]) -> str:
    match row.function:
        case "_?_:_":
            return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
        case "_[_]":
            return f"{arguments[0]}[{arguments[1]}]"
        case "_[?_]":
            return f"{arguments[0]}[?{arguments[1]}]"
        case "@in":
            return f"({arguments[0]} in {arguments[1]})"
        case "!_" | "-_":
            return f"{row.function[0]}({arguments[0]})"
        case name if name in OPERATORS:
            return f"({arguments[0]} {OPERATORS[name]} {arguments[1]})"
    if row.is_member:
        return f"{arguments[0]}.{row.function}({', '.join(arguments[1:])})"
    return f"{row.function}({', '.join(arguments)})"


class Calls:
    """Composes expressions of a given type from literals and from calls of the given overloads."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._by_result: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if not row.is_generic:
                self._by_result[row.result.name].append(row)

    def call(self, choose: Choose, row: Row, depth: int) -> str:
        maps = [
            kind for parameter in row.parameters for kind in (parameter, *parameter.parameters) if kind.name == "map"
        ]
        bound = {kind.parameters[0].name: choose(KEYS) for kind in maps}
        return render(row, [self._expression(choose, kind, bound, depth) for kind in row.parameters])

    def _expression(self, choose: Choose, kind: CelType, bound: dict[str, str], depth: int) -> str:
        """`bound`: the types chosen for the type parameters of the call."""
        if kind.name == "list":
            items = [self._expression(choose, kind.parameters[0], bound, 0) for _ in range(choose((1, 2, 3)))]
            return f"[{', '.join(items)}]"
        if kind.name == "map":
            keys = {self._expression(choose, kind.parameters[0], bound, 0) for _ in range(choose((1, 0, 2)))}
            entries = (f"{key}: {self._expression(choose, kind.parameters[1], bound, 0)}" for key in sorted(keys))
            return f"{{{', '.join(entries)}}}"
        if kind.name == "optional_type":
            return f"optional.of({self._expression(choose, kind.parameters[0], bound, 0)})"
        name = kind.name
        if kind.is_open:
            if name not in bound:
                bound[name] = choose(VALUES)
            name = bound[name]
        elif name == "dyn":
            name = choose(VALUES)
        if depth and self._by_result[name] and choose((True, False)):
            return self.call(choose, choose(self._by_result[name]), depth - 1)
        return str(choose(LITERALS[name]))


def is_shared(row: Row) -> bool:
    """Whether the C++ implementation, too, knows the overload."""
    if not all(is_plain(kind) for kind in (*row.parameters, row.result)) or row.function.startswith(("@", "cel.@")):
        return row.function == "@in"
    try:
        NATIVE.compile(Calls(()).call(lambda options: options[0], row, 0))
    except Exception:
        return False
    return True


def is_plain(kind: CelType) -> bool:
    if kind.name in ("list", "map", "optional_type"):
        return all(map(is_plain, kind.parameters))
    return kind.is_open or kind.name in LITERALS or kind.name == "dyn"


SHARED = [row for rows in functions().values() for row in rows if is_shared(row)]
AGREED = [row for row in SHARED if row.overload not in DISAGREEMENTS]
CALLS = Calls(AGREED)


def plain(value: Any) -> Any:
    """Return a value as the C++ implementation hands it to Python."""
    match value:
        case Duration():
            return timedelta(microseconds=value.nanoseconds // 1000)
        case Timestamp():
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.nanoseconds // 1000)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {from_key(key): plain(item) for key, item in value.items()}
        case float() if math.isnan(value):
            return "NaN"
    return value


def ours(expression: str) -> tuple[bool, Any]:
    """Return whether there is a value, and the value. Literals and constant conversions are checked at compile time."""
    try:
        program = Program(OURS.compile(expression).program)
    except ProgramFailed:
        reject()
    except CompilationFailed as error:
        assume("argument" not in str(error))
        raise
    outcome = program.run({})
    return outcome.error is None, plain(outcome.value)


def theirs(expression: str) -> tuple[bool, Any]:
    try:
        value = NATIVE.compile(expression).eval(NATIVE.Activation({}))
    except Exception:
        return False, None
    if value.type().name() == "ERROR":
        return False, None
    return True, plain(value.plain_value())


@pytest.mark.parametrize("row", AGREED, ids=lambda row: row.overload)
@settings(max_examples=15, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_function_has_the_same_results_in_both_implementations(row: Row, data: st.DataObject) -> None:
    expression = CALLS.call(lambda options: data.draw(st.sampled_from(options)), row, depth=1)
    if row.result.name == "optional_type":
        expression += ".hasValue()"
    assert ours(expression) == theirs(expression)


def test_most_of_the_library_is_shared() -> None:
    assert len(AGREED) > 150


def test_every_disagreement_is_about_a_shared_function() -> None:
    assert DISAGREEMENTS.keys() <= {row.overload for row in SHARED}
