"""JSON pointers of JSON patch operations: resolution to a key of an object or an index of a list.

Tokens follow slashes, with `~1` for a slash and `~0` for a tilde. Text before the first slash is ignored. Indices may
be negative; `-` is the position after the last element.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import PatchDoesNotApply

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INTEGER_DIGITS = 18


def find_place(document: Any, path: str, missing: str, opened: dict[int, Json]) -> ContainerKey:
    """Return the location of the path. Raises PatchDoesNotApply with `missing` if the path cannot be resolved.

    Objects on the way are recorded in `opened`, by identity.
    """
    tokens = [(token.replace("~1", "/").replace("~0", "~") if "~" in token else token) for token in path.split("/")[1:]]
    container = document if tokens else None
    for token in tokens[:-1]:
        if isinstance(container, dict):
            opened[id(container)] = container
        container = _descend(container, token)
    if isinstance(container, dict):
        opened[id(container)] = container
        return _Member(container, tokens[-1])
    if isinstance(container, list):
        return _Element(container, tokens[-1])
    raise PatchDoesNotApply(f"{missing}: missing value")


class ContainerKey(Protocol):
    """Key in a container. `context` begins the error message."""

    key: str

    def get(self, context: str) -> Any: ...
    def add(self, value: Any, context: str) -> None: ...
    def replace(self, value: Any, context: str) -> None: ...
    def remove(self, context: str) -> None: ...


@dataclass(slots=True)
class _Member:
    container: dict[str, Any]
    key: str

    def get(self, context: str) -> Any:
        return self.container.get(self.key)

    def add(self, value: Any, context: str) -> None:
        self.container[self.key] = value

    replace = add

    def remove(self, context: str) -> None:
        if self.key not in self.container:
            raise PatchDoesNotApply(f"{context}: Unable to remove nonexistent key: {self.key}: missing value")
        del self.container[self.key]


@dataclass(slots=True)
class _Element:
    container: list[Any]
    key: str

    def get(self, context: str) -> Any:
        return self.container[self._index(len(self.container), context)]

    def add(self, value: Any, context: str) -> None:
        if self.key == "-":
            self.container.append(value)
        else:
            self.container.insert(self._index(len(self.container) + 1, context), value)

    def replace(self, value: Any, context: str) -> None:
        try:
            self.container[self._index(len(self.container), context)] = value
        except PatchDoesNotApply:
            raise PatchDoesNotApply(f"{context}: missing value") from None

    def remove(self, context: str) -> None:
        del self.container[self._index(len(self.container), context)]

    def _index(self, size: int, context: str) -> int:
        index = _integer(self.key)
        if index is None:
            raise PatchDoesNotApply(f"{context}: value was not a proper array index: '{self.key}'")
        if not -size <= index < size:
            raise PatchDoesNotApply(f"{context}: Unable to access invalid index: {index}: invalid index referenced")
        return index % size


def _descend(container: Any, token: str) -> Any:
    """Return the value that the token names, or None when it names nothing."""
    if isinstance(container, dict):
        return container.get(token)
    if isinstance(container, list):
        index = _integer(token)
        return container[index] if index is not None and -len(container) <= index < len(container) else None
    return None


def _integer(token: str) -> int | None:
    return int(token) if _INTEGER.fullmatch(token) and len(token) <= _INTEGER_DIGITS else None
