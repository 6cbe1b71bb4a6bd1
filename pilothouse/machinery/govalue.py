"""JSON values in Go's %v format, and the Go types of decoded values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

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
        return _float(value)
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


def _float(value: float) -> str:
    """Format with the shortest digits; with an exponent from 1e6 up and below 1e-4."""
    number = Decimal(repr(value)).normalize()
    sign, digits, _ = number.as_tuple()
    power = number.adjusted()
    if -4 <= power < 6:
        return f"{number:f}"
    head = "".join(map(str, digits))
    mantissa = head[0] + (f".{head[1:]}" if len(head) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
