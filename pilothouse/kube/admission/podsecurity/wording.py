"""The words in which violations name containers and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def plural(word: str, items: Iterable[Any], *, many: str = "") -> str:
    return word if len(list(items)) == 1 else many or word + "s"


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def named(word: str, items: list[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{plural(word, items)} {quoted(items)}"


def setters(pod: bool, containers: list[str]) -> str:
    """Return words for the pod, some of its containers, or both, as violations name them; empty for none."""
    who = (["pod"] if pod else []) + ([named("container", containers)] if containers else [])
    return " and ".join(who)
