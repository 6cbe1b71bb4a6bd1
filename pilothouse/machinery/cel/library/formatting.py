"""string.format(): %s %d %f %e %b %o %x %X, and %% for the sign itself.

The same walk over a template checks literal arguments by their types at compile time and formats values at run time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp, Type, UInt, from_key, type_name
from pilothouse.machinery.cel.library.conversions import text_of
from pilothouse.machinery.gofmt import quote

_PRECISION = 6
_MOST_PRECISION = 226
_SPECIAL_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SUPERSCRIPT = str.maketrans("+-0123456789", "+⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TEXTS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
REFUSALS = {
    "s": f"string clause can only be used on {_TEXTS}, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_PRECISION_PART = re.compile(r"\.([0-9]*)(.?)", re.DOTALL)

Fill: TypeAlias = Callable[[str, int, int], str]
"""(letter, precision, index of the argument) → text. Raises EvaluationFailed."""


def walk_template(template: str, fill: Fill, count: int, *, lenient: bool) -> tuple[str, int]:
    """Return the text and the number of arguments used. Raises EvaluationFailed.

    `lenient`: a template that ends in the middle of a clause is reported before a missing argument, as upstream's
    compile-time check does.
    """
    parts, position, used = [], 0, 0
    while (percent := template.find("%", position)) >= 0:
        parts.append(template[position:percent])
        if template[percent + 1 : percent + 2] == "%":
            parts.append("%")
            position = percent + 2
            continue
        if not lenient and used >= count:
            raise EvaluationFailed(f"index {used} out of range")
        if percent + 1 >= len(template):
            raise EvaluationFailed("unexpected end of string")
        if used >= count:
            raise EvaluationFailed(f"index {used} out of range")
        letter, precision, position = _clause(template, percent + 1)
        try:
            parts.append(fill(letter, precision, used))
        except EvaluationFailed as error:
            error.args = (f"error during formatting: {error}",)
            raise
        used += 1
    return "".join(parts) + template[position:], used


def _clause(template: str, start: int) -> tuple[str, int, int]:
    """Return the letter, the precision and the end of the clause that begins after the sign."""
    precision, position = _PRECISION, start
    if template[start] == ".":
        found = _PRECISION_PART.match(template, start)
        assert found is not None
        why = "could not parse formatting clause: error while parsing precision: "
        if not found[2]:
            raise EvaluationFailed(f"{why}could not find end of precision specifier")
        if not found[1] or len(found[1].lstrip("0")) > 18:
            problem = "value out of range" if found[1] else "invalid syntax"
            number = f"strconv.Atoi: parsing {quote(found[1])}: {problem}"
            raise EvaluationFailed(f"{why}error while converting precision to integer: {number}")
        precision, position = int(found[1]), found.end() - 1
    letter = template[position]
    if letter not in REFUSALS:
        byte = chr(letter.encode()[0])
        raise EvaluationFailed(f'could not parse formatting clause: unrecognized formatting clause "{byte}"')
    return letter, precision, position + 1


def format_string(template: str, arguments: list[Any]) -> str:
    def fill(letter: str, precision: int, index: int) -> str:
        return _formatted(letter, precision, arguments[index])

    return walk_template(template, fill, len(arguments), lenient=False)[0]


def _formatted(letter: str, precision: int, value: Any) -> str:
    if letter == "s":
        return _string(value)
    kind = type(value)
    if letter in "fe":
        number = _SPECIAL_NUMBERS.get(value) if kind is str else value
        if type(number) is float:
            return _real(number, letter, precision)
    elif kind is int or kind is UInt:
        return format(int(value), letter)
    elif letter == "b" and kind is bool:
        return str(int(value))
    elif letter in "xX" and kind in (str, bytes):
        digits: str = (value if kind is bytes else value.encode()).hex()
        return digits if letter == "x" else digits.upper()
    raise EvaluationFailed(REFUSALS[letter] + type_name(value))


def _string(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if type(value) is dict:
        pairs = sorted((_key(from_key(key)), _literal(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"
    if type(value) is bytes:
        try:
            return text_of(value)
        except EvaluationFailed as error:
            raise EvaluationFailed(f'could not convert argument "{error}" to string') from None
    if type(value) in (str, int, UInt, float, bool, Timestamp, Duration, Type):
        return text_of(value)
    raise EvaluationFailed(REFUSALS["s"] + type_name(value))


def _key(key: Any) -> str:
    if type(key) not in (str, bool, int, UInt):
        raise EvaluationFailed(f"no formatting function for map key of type {type_name(key)}")
    return _literal(key)


def _literal(value: Any) -> str:
    """Return an item of a list or map as an expression would write it."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(_string(value))}"
        case float() if math.isfinite(value):
            return f"{value:.6f}"
        case float():
            return quote(text_of(value))
        case Timestamp():
            return f"timestamp({quote(text_of(value))})"
        case Duration():
            return f"duration({quote(text_of(value))})"
    if value is None or isinstance(value, bool | int | list | dict | Type):
        return _string(value)
    raise EvaluationFailed(f"no formatting function for {type_name(value)}")


def _real(number: float, letter: str, precision: int) -> str:
    """Format as upstream's printer for American English does; the precision of %e is only a width there."""
    if not math.isfinite(number):
        text = "NaN" if math.isnan(number) else ("∞" if number > 0 else "-∞")
        return text if letter == "f" else text.rjust(min(precision, 1000))
    if letter == "f":
        return f"{number:,.{min(precision, _MOST_PRECISION)}f}"
    mantissa, _, exponent = f"{number:.6e}".partition("e")
    sign = "⁻" if exponent[0] == "-" else ""
    text = f"{mantissa}×10{sign}{exponent[1:].translate(_SUPERSCRIPT)}"
    return text.rjust(min(precision, 1000))
