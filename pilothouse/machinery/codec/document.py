"""A JSON document exactly as it was written: duplicate keys in their places, numbers with their spelling.

Only what goes wrong is looked at in this form; what is right is read into plain dicts and lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Pairs(list[tuple[str, Any]]):
    """An object's members in order; a key may stand here more than once."""


class Literal(float):
    """A number that is no plain integer, with the text it was written as."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def of(cls, text: str) -> Literal:
        number = cls(text)
        number.text = text
        return number


def is_object(value: Any) -> bool:
    return isinstance(value, (dict, Pairs))


def is_array(value: Any) -> bool:
    return isinstance(value, list) and not isinstance(value, Pairs)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def members(value: Any) -> Iterable[tuple[str, Any]]:
    """The members of an object in either form, in the order of the text."""
    return value if isinstance(value, Pairs) else value.items()


def spelling(number: float) -> str:
    return number.text if isinstance(number, Literal) else repr(number).removesuffix(".0")


def plain(value: Any) -> Any:
    """Dicts, lists and plain numbers; of members with one key the last stays."""
    if is_object(value):
        return {key: plain(member) for key, member in members(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Literal) else value
