"""Path elements as fieldsV1 writes them: the keys of a field set's tree.

    f:image                 a field            .image
    k:{"name":"c"}          a list-map item    [name="c"]
    v:"x"                   a set item         [="x"]
    i:3                     an index           [3]

Elements of one meaning are one string: key fields are sorted and numbers have their shortest form.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.gofmt import escape_html, quote
from pilothouse.machinery.govalue import go_value
from pilothouse.machinery.objects import Json

Order: TypeAlias = tuple[Any, ...]

_REMEMBERED, _SHORT = 8192, 128
_RANKS = {int: 0, float: 0, str: 1, bool: 2}


class InvalidElement(ValueError):
    """A key of a fieldsV1 that is no path element."""


def encode(value: Any) -> str:
    """JSON as Go writes it, in which equal numbers look the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return escape_html(orjson.dumps(value).decode())


_encode_text = bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)(encode)


def encode_key(value: Any) -> str:
    """As `encode`, for the same few values again and again."""
    checkpoint()
    if type(value) is str:
        return _encode_text(value)
    # Integers, such as ports, have nothing in them that would have to be escaped.
    return orjson.dumps(value).decode() if type(value) is int else encode(value)


def key_element(fields: Json) -> str:
    return "k:{" + ",".join(f"{encode_key(name)}:{encode_key(fields[name])}" for name in sorted(fields)) + "}"


def value_element(value: Any) -> str:
    return "v:" + encode_key(value)


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def canonical(element: str) -> str:
    """The one form of an element that somebody else wrote. Raises InvalidElement."""
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
    """Return the element as messages show it."""
    if element[:2] == "f:":
        return f".{element[2:]}"
    if element[:2] == "i:":
        return f"[{element[2:]}]"
    content = _content(element)
    if element[:2] == "v:":
        return f"[={_shown_value(content)}]"
    return "[" + ",".join(f"{name}={_shown_value(content[name])}" for name in sorted(content)) + "]"


@bounded_cache(entries=_REMEMBERED, key_bytes=_SHORT)
def order(element: str) -> Order:
    """Sorts siblings as upstream does: fields by name, then items by their keys, then by value, then by index."""
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
    """Values of different types can be sorted too: numbers, strings, booleans, the rest."""
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
