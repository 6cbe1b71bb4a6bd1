"""Go's text formats in upstream's messages: fmt's %q and %v, JSON type names, and strconv's integers.

Python's int() rejects texts with thousands of digits; `parse_int64` does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


def quote(text: str) -> str:
    """Format as Go's %q: double quotes, Go's escapes, printable Unicode unchanged."""
    if not text.isprintable() or '"' in text or "\\" in text:
        text = text.translate({ord(char): _escape(char) for char in set(text)})  # in C: texts may be long
    return f'"{text}"'


def quoted_list(texts: Iterable[str]) -> str:
    """Format a list as Go's %q."""
    return f"[{' '.join(map(quote, texts))}]"


def _escape(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SPECIAL_IN_HTML = re.compile("[<>&\u2028\u2029]")


def escape_html(json: str) -> str:
    """Escape characters special to HTML and JavaScript, as Go's encoding/json does."""
    if not _SPECIAL_IN_HTML.search(json):
        return json
    return _SPECIAL_IN_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


_TYPES = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


_JSON_TYPES = {
    type(None): "null",
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def json_type(value: Any) -> str:
    """Return Go's name of a JSON type, as in `cannot unmarshal number into …`."""
    return _JSON_TYPES[type(value)]


def not_an_object(value: Any) -> str:
    """Return the message of Go's decoder for a value that is not an object."""
    return f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"


def go_value(value: Any) -> str:
    """Format as Go's %v: `map[a:1 b:[x y] c:<nil>]`, with sorted keys."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_value, value))}]"
    if isinstance(value, float):
        # Shortest digits; with an exponent from 1e6 up and below 1e-4.
        number = Decimal(repr(value)).normalize()
        sign, digits, _ = number.as_tuple()
        power = number.adjusted()
        if -4 <= power < 6:
            return f"{number:f}"
        head = "".join(map(str, digits))
        mantissa = head[0] + (f".{head[1:]}" if len(head) > 1 else "")
        return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def go_type(value: Any) -> str:
    """Return the Go type of a value decoded by upstream."""
    return _TYPES[type(value)]


def go_string(value: Any) -> str:
    """Format as Go's %s: strings unchanged, other values with Go's %!s(…) error."""
    if isinstance(value, str):
        return value
    return "%!s(<nil>)" if value is None else f"%!s({go_type(value)}={go_value(value)})"


_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS = 19
"""Maximum digits of an int64."""


def parse_int64(text: str) -> int:
    """Parse an int64. Raises ValueError with Go's message."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    digits = text.lstrip("+-0") or "0"
    number = int(digits) if len(digits) <= _DIGITS else 2**64
    number = -number if text[0] == "-" else number
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def scaled_int_or_percent(value: int | str, total: int, *, round_up: bool) -> int:
    """Return the number, or the percentage of `total`. Raises ValueError for an invalid percentage."""
    if isinstance(value, int):
        return value
    share = parse_int64(value.removesuffix("%")) * total
    return -(-share // 100) if round_up else share // 100
