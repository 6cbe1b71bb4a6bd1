"""Reading nested fields that may be missing: the answer is then what Go's zero value would be."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json


def part(obj: Json, *names: str) -> Json:
    """Return the object that the names lead to, empty where there is none.

    >>> part({"spec": {"template": {"spec": {}}}}, "spec", "template")
    {'spec': {}}
    """
    for name in names:
        obj = obj.get(name) or {}
    return obj


def number(obj: Json, *names: str) -> int:
    """Return the number that the names lead to, 0 where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or 0


def text(obj: Json, *names: str) -> str:
    """Return the string that the names lead to, empty where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or ""


def items(obj: Json, *names: str) -> list[Any]:
    """Return the list that the names lead to, empty where there is none."""
    *path, last = names
    return part(obj, *path).get(last) or []
