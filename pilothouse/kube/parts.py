"""Reading parts of an object that may be missing: the answer is then what Go's zero value would be."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json


def part(obj: Json, *names: str) -> Json:
    """The object inside the object, empty where there is none."""
    for name in names:
        obj = obj.get(name) or {}
    return obj


def number(obj: Json, *names: str) -> int:
    *path, last = names
    return part(obj, *path).get(last) or 0


def text(obj: Json, *names: str) -> str:
    *path, last = names
    return part(obj, *path).get(last) or ""


def items(obj: Json, *names: str) -> list[Any]:
    *path, last = names
    return part(obj, *path).get(last) or []
