"""The form of a type: its schema, how a JSON value of it is read, and what stands for a missing one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from pilothouse.builder.types.hints import Hint, Names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

Read: TypeAlias = Callable[[Any], Any]
"""Makes a value from JSON. JSON of another type than the schema's is left as it is, so that reading never fails."""


@dataclass(frozen=True, slots=True)
class Form:
    schema: Json
    """Shared between all who use the type: copied before it is changed."""
    read: Read
    zero: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an annotation stands, for those who read an error, and the classes that are being looked at."""

    path: str
    inside: tuple[type, ...] = ()
    names: Names | None = None

    def field(self, name: str) -> Place:
        return Place(f"{self.path}.{name}", self.inside, self.names)

    def items(self) -> Place:
        return Place(f"{self.path}[]", self.inside, self.names)

    def within(self, cls: type) -> Place:
        """Raises TypeError for a class within itself, which no schema can say."""
        if cls in self.inside:
            self.refuse(f"{cls.__qualname__} contains itself, and the schema of an object has no end then")
        return Place(self.path, (*self.inside, cls), self.names)

    def refuse(self, why: str) -> NoReturn:
        raise TypeError(f"{self.path}: {why}")


FormOf: TypeAlias = Callable[[Hint, Place], Form]
"""Makes the forms of parts."""


def as_it_is(value: Any) -> Any:
    return value


def nothing() -> None:
    return None
