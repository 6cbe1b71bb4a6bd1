"""string.format(): %s %d %f %e %b %o %x %X, and %% for the sign itself."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from pilothouse.machinery.cel.interpreter.conversions import text_of
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, Type, UInt, type_name
from pilothouse.machinery.gofmt import quote

_DEFAULT_PRECISION = 6
_MOST_PRECISION = 100
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d*))?(.?))", re.DOTALL)
_SPECIAL_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def format_string(template: str, arguments: list[Any]) -> str:
    waiting = iter(enumerate(arguments))

    def filled(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if not found[2]:
            raise EvaluationFailed("unexpected end of string")
        try:
            _, argument = next(waiting)
        except StopIteration:
            raise EvaluationFailed(f"index {len(arguments)} out of range") from None
        return _clause(found[2], found[1])(argument)

    return _CLAUSE.sub(filled, template)


def _clause(letter: str, precision: str | None) -> Callable[[Any], str]:
    places = _precision(precision)
    match letter:
        case "s":
            return _string
        case "d":
            return _decimal
        case "f" | "e":
            return lambda value: _real(value, letter, places)
        case "b" | "o" | "x" | "X":
            return lambda value: _based(value, letter)
    raise EvaluationFailed(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')


def _precision(text: str | None) -> int:
    if text is None:
        return _DEFAULT_PRECISION
    if not text or int(text) > _MOST_PRECISION:
        raise EvaluationFailed(f"error while parsing precision: precision {text} is not supported")
    return int(text)


def _refused(clause: str, takes: str, value: Any) -> EvaluationFailed:
    why = f"{clause} clause can only be used on {takes}, was given {type_name(value)}"
    return EvaluationFailed(f"error during formatting: {why}")


def _string(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{key}:{each}" for key, each in sorted(_pairs(value))) + "}"
    if type(value) in (str, int, UInt, float, bool, bytes, Timestamp, Duration):
        return text_of(value)
    if type(value) is Type:
        return value.name
    takes = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise _refused("string", takes, value)


def _pairs(value: dict[Any, Any]) -> list[tuple[str, str]]:
    return [(_literal(key), _literal(each)) for key, each in value.items()]


def _literal(value: Any) -> str:
    """Return the value as it would be written in an expression."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(text_of(value))}"
        case float() if math.isfinite(value):
            return f"{value:.6f}"
        case float():
            return quote(text_of(value))
        case Timestamp():
            return f"timestamp({quote(text_of(value))})"
        case Duration():
            return f"duration({quote(text_of(value))})"
    return _string(value)


def _decimal(value: Any) -> str:
    if type(value) not in (int, UInt):
        raise _refused("decimal", "integers", value)
    return str(int(value))


def _real(value: Any, letter: str, places: int) -> str:
    number = _SPECIAL_NUMBERS.get(value) if type(value) is str else value
    if type(number) is not float:
        clause = "fixed-point" if letter == "f" else "scientific"
        raise _refused(clause, "doubles", value)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("∞" if number > 0 else "-∞")
    return f"{number:.{places}{letter}}"


def _based(value: Any, letter: str) -> str:
    if type(value) in (int, UInt):
        return format(int(value), letter)
    if letter == "b":
        if type(value) is not bool:
            raise _refused("binary", "integers and bools", value)
        return str(int(value))
    if letter == "o" or type(value) not in (str, bytes):
        takes = "integers" if letter == "o" else "integers, byte buffers, and strings"
        raise _refused("octal" if letter == "o" else "hex", takes, value)
    digits = (value if type(value) is bytes else value.encode()).hex()
    return digits if letter == "x" else digits.upper()
