"""Markers that bound values: numbers, string lengths, patterns, and sizes of lists and dicts."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NUMBERS = ("integer", "number")


class Marker:
    """A marker of an annotation, which adds keywords to the schema."""

    of: ClassVar[tuple[str, ...]] = ()
    """JSON types that the marker applies to; empty for all."""
    keyword: ClassVar[str] = ""
    """Schema keyword of markers with a single value."""

    def keywords(self, json_type: str) -> Json:
        """Return the keywords for the schema of a value of this type."""
        return {self.keyword: getattr(self, "value", True)} if self.keyword else {}


@dataclass(frozen=True)
class Minimum(Marker):
    """The smallest allowed number; with `exclusive`, an exclusive lower bound.

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
    """The largest allowed number; with `exclusive`, an exclusive upper bound.

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
    """The value is a multiple of the number.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MultipleOf
    >>> Sector = Annotated[int, MultipleOf(512)]
    """

    value: float
    keyword = "multipleOf"
    of = _NUMBERS


@dataclass(frozen=True)
class MinLength(Marker):
    """Minimum length of a string.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinLength
    >>> Title = Annotated[str, MinLength(1)]
    """

    value: int
    keyword = "minLength"
    of = ("string",)


@dataclass(frozen=True)
class MaxLength(Marker):
    """Maximum length of a string.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxLength
    >>> Label = Annotated[str, MaxLength(63)]
    """

    value: int
    keyword = "maxLength"
    of = ("string",)


@dataclass(frozen=True)
class Pattern(Marker):
    """Regular expression, in Go's syntax, that matches the string.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Pattern
    >>> Letters = Annotated[str, Pattern("^[a-z]+$")]
    """

    value: str
    keyword = "pattern"
    of = ("string",)


@dataclass(frozen=True)
class Format(Marker):
    """OpenAPI format of a string or number.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Format
    >>> Address = Annotated[str, Format("ipv4")]
    """

    value: str
    keyword = "format"
    of = ("string", *_NUMBERS)


@dataclass(frozen=True)
class MinItems(Marker):
    """Minimum number of items of a list.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinItems
    >>> Hosts = Annotated[list[str], MinItems(1)]
    """

    value: int
    keyword = "minItems"
    of = ("array",)


@dataclass(frozen=True)
class MaxItems(Marker):
    """Maximum number of items of a list.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxItems
    >>> Hosts = Annotated[list[str], MaxItems(10)]
    """

    value: int
    keyword = "maxItems"
    of = ("array",)


@dataclass(frozen=True)
class MinProperties(Marker):
    """Minimum number of entries of a dict.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MinProperties
    >>> Limits = Annotated[dict[str, int], MinProperties(1)]
    """

    value: int
    keyword = "minProperties"
    of = ("object",)


@dataclass(frozen=True)
class MaxProperties(Marker):
    """Maximum number of entries of a dict.

    >>> from typing import Annotated
    >>> from pilothouse.builder import MaxProperties
    >>> Limits = Annotated[dict[str, int], MaxProperties(10)]
    """

    value: int
    keyword = "maxProperties"
    of = ("object",)
