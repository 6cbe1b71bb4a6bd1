"""Path elements in fieldsV1 notation: the keys of a field set's tree.

    f:image                 a field            .image
    k:{"name":"c"}          a list-map item    [name="c"]
    v:"x"                   a set item         [="x"]
    i:3                     an index           [3]

Equal elements are equal strings: key fields are sorted and numbers are in shortest form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.gofmt import escape_html, go_value, quote
from pilothouse.machinery.objects import Json

Order: TypeAlias = tuple[Any, ...]

_REMEMBERED, _SHORT = 8192, 128
_RANKS = {int: 0, float: 0, str: 1, bool: 2}


class InvalidElement(ValueError):
    """A key of fieldsV1 is not a path element."""


def encode(value: Any) -> str:
    """Encode as Go's JSON; equal numbers have equal text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return escape_html(orjson.dumps(value).decode())


_encode_text = bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)(encode)


def encode_key(value: Any) -> str:
    """As `encode`, cached for the few values that recur as keys."""
    checkpoint()
    if type(value) is str:
        return _encode_text(value)
    # Integers, such as ports, need no escaping.
    return orjson.dumps(value).decode() if type(value) is int else encode(value)


def key_element(fields: Json) -> str:
    return "k:{" + ",".join(f"{encode_key(name)}:{encode_key(fields[name])}" for name in sorted(fields)) + "}"


def value_element(value: Any) -> str:
    return "v:" + encode_key(value)


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def canonical(element: str) -> str:
    """Return the canonical form of an element from a client. Raises InvalidElement."""
    if element[:2] == "f:":
        return element
    if element[:2] == "i:":
        return f"i:{_index(element)}"
    content = _content(element)
    if element[:2] == "v:":
        return value_element(content)
    if not isinstance(content, dict):
        raise InvalidElement(element)
    return key_element(content)


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def shown(element: str) -> str:
    """Format the element for messages."""
    return _shown(element, lambda content: content)


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def shown_as_decoded(element: str) -> str:
    """Format an element of a configuration, whose numbers Go decodes as floats: `[port=1e+06]`."""
    return _shown(element, as_decoded)


def _shown(element: str, convert: Callable[[Any], Any]) -> str:
    if element[:2] == "f:":
        return f".{element[2:]}"
    if element[:2] == "i:":
        return f"[{element[2:]}]"
    content = convert(_content(element))
    if element[:2] == "v:":
        return f"[={_shown_value(content)}]"
    return "[" + ",".join(f"{name}={_shown_value(content[name])}" for name in sorted(content)) + "]"


def as_decoded(value: Any) -> Any:
    """Convert numbers to floats, as Go decodes the numbers of a configuration."""
    if isinstance(value, dict):
        return {key: as_decoded(member) for key, member in value.items()}
    if isinstance(value, list):
        return list(map(as_decoded, value))
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def order(element: str) -> Order:
    """Sort key in upstream's order: fields by name, then items by keys, by value, by index."""
    checkpoint()
    if element == ".":
        return (-1,)
    if element[:2] == "f:":
        return (0, element[2:])
    if element[:2] == "i:":
        return (3, _index(element))
    content = _content(element)
    if element[:2] == "v:":
        return (2, _rank(content))
    return (1, tuple((name, _rank(content[name])) for name in sorted(content)))


def _content(element: str) -> Any:
    if element[:2] not in ("k:", "v:"):
        raise InvalidElement(element)
    try:
        return orjson.loads(element[2:])
    except orjson.JSONDecodeError:
        raise InvalidElement(element) from None


def _index(element: str) -> int:
    try:
        return int(element[2:])
    except ValueError:
        raise InvalidElement(element) from None


def _rank(value: Any) -> Order:
    """Sort key across types: numbers, strings, booleans, others."""
    rank = _RANKS.get(type(value), 3)
    return (rank, value if rank < 3 else encode(value))


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown_value(value[name])}" for name in sorted(value))
    if isinstance(value, list):
        return "[" + ",".join(map(_shown_value, value)) + "]"
    return go_value(value)
