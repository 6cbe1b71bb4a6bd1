"""Reinvocation: when a webhook or a policy changed the object, all who admit see it once more, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class ReinvocationContext:
    """Of one request, for both of its rounds."""

    __slots__ = ("_values", "is_reinvoke", "should_reinvoke")

    def __init__(self) -> None:
        self.is_reinvoke = False
        """Whether this is the second round."""
        self.should_reinvoke = False
        """Whether a plugin asked for a second round."""
        self._values: dict[str, Any] | None = None

    def value(self, plugin: str, make: Callable[[], T]) -> T:
        """What the plugin remembers between the rounds, made when it first asks."""
        if self._values is None:
            self._values = {}
        if plugin not in self._values:
            self._values[plugin] = make()
        value: T = self._values[plugin]
        return value
