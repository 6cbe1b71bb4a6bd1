"""Markers that bound values: numbers, the characters of texts, and how much is in lists and dicts."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NUMBERS = ("integer", "number")


class Marker:
    """What a marker of annotations says in the schema of the values."""

    of: ClassVar[tuple[str, ...]] = ()
    """The JSON types of the values that it can mark; empty for all."""
    keyword: ClassVar[str] = ""
    """What most markers say, with their value."""

    def keywords(self, json_type: str) -> Json:
        """Return what is added to the schema of a value of this type."""
        return {self.keyword: getattr(self, "value", True)} if self.keyword else {}


@dataclass(frozen=True)
class Minimum(Marker):
    """The smallest number allowed, or with `exclusive` the one that it must exceed.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Minimum
    >>> Replicas = Annotated[int, Minimum(1)]
    """

    value: float
    exclusive: bool = False
    of = _NUMBERS

    def keywords(self, json_type: str) -> Json:
        return {"minimum": self.value, **({"exclusiveMinimum": True} if self.exclusive else {})}


@dataclass(frozen=True)
class Maximum(Marker):
    """The largest number allowed, or with `exclusive` the one to stay below.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Maximum
    >>> Share = Annotated[float, Maximum(1.0, exclusive=True)]
    """

    value: float
    exclusive: bool = False
    of = _NUMBERS

    def keywords(self, json_type: str) -> Json:
        return {"maximum": self.value, **({"exclusiveMaximum": True} if self.exclusive else {})}


@dataclass(frozen=True)
class MultipleOf(Marker):
    """Only multiples of the number are allowed.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MultipleOf
    >>> Sector = Annotated[int, MultipleOf(512)]
    """

    value: float
    keyword = "multipleOf"
    of = _NUMBERS


@dataclass(frozen=True)
class MinLength(Marker):
    """A text has at least so many characters.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinLength
    >>> Title = Annotated[str, MinLength(1)]
    """

    value: int
    keyword = "minLength"
    of = ("string",)


@dataclass(frozen=True)
class MaxLength(Marker):
    """A text has at most so many characters.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxLength
    >>> Label = Annotated[str, MaxLength(63)]
    """

    value: int
    keyword = "maxLength"
    of = ("string",)


@dataclass(frozen=True)
class Pattern(Marker):
    """The regular expression, in Go's syntax, is found in a text.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Pattern
    >>> Letters = Annotated[str, Pattern("^[a-z]+$")]
    """

    value: str
    keyword = "pattern"
    of = ("string",)


@dataclass(frozen=True)
class Format(Marker):
    """A text or number has the named OpenAPI format.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Format
    >>> Address = Annotated[str, Format("ipv4")]
    """

    value: str
    keyword = "format"
    of = ("string", *_NUMBERS)


@dataclass(frozen=True)
class MinItems(Marker):
    """A list has at least so many items.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinItems
    >>> Hosts = Annotated[list[str], MinItems(1)]
    """

    value: int
    keyword = "minItems"
    of = ("array",)


@dataclass(frozen=True)
class MaxItems(Marker):
    """A list has at most so many items.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxItems
    >>> Hosts = Annotated[list[str], MaxItems(10)]
    """

    value: int
    keyword = "maxItems"
    of = ("array",)


@dataclass(frozen=True)
class MinProperties(Marker):
    """A dict has at least so many entries.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinProperties
    >>> Limits = Annotated[dict[str, int], MinProperties(1)]
    """

    value: int
    keyword = "minProperties"
    of = ("object",)


@dataclass(frozen=True)
class MaxProperties(Marker):
    """A dict has at most so many entries.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxProperties
    >>> Limits = Annotated[dict[str, int], MaxProperties(10)]
    """

    value: int
    keyword = "maxProperties"
    of = ("object",)
