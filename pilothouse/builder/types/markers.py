"""What an annotation can say beyond its type, as in `Annotated[int, Minimum(1), Description("How many.")]`."""

from __future__ import annotations

from typing import Any, ClassVar

from pilothouse.extensions.schema.structural import (
    EMBEDDED,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NUMBERS = ("integer", "number")


class Marker:
    """One of the marks below."""

    of: ClassVar[tuple[str, ...]] = ()
    """The JSON types of the values that it can mark; empty for all."""
    keyword: ClassVar[str] = ""
    """What most marks say in a schema, with their value."""

    def keywords(self, json_type: str) -> Json:
        """Return what is added to the schema of a value of this type."""
        return {self.keyword: getattr(self, "value", True)} if self.keyword else {}


@dataclass(frozen=True)
class Minimum(Marker):
    """The smallest number allowed, or with `exclusive` the one that it must exceed: `Annotated[int, Minimum(1)]`."""

    value: float
    exclusive: bool = False
    of = _NUMBERS

    def keywords(self, json_type: str) -> Json:
        return {"minimum": self.value, **({"exclusiveMinimum": True} if self.exclusive else {})}


@dataclass(frozen=True)
class Maximum(Marker):
    """The largest number allowed, or with `exclusive` the one to stay below: `Annotated[float, Maximum(1.0)]`."""

    value: float
    exclusive: bool = False
    of = _NUMBERS

    def keywords(self, json_type: str) -> Json:
        return {"maximum": self.value, **({"exclusiveMaximum": True} if self.exclusive else {})}


@dataclass(frozen=True)
class MultipleOf(Marker):
    """Only multiples of the number are allowed: `Annotated[int, MultipleOf(512)]`."""

    value: float
    keyword = "multipleOf"
    of = _NUMBERS


@dataclass(frozen=True)
class MinLength(Marker):
    """A text has at least so many characters: `Annotated[str, MinLength(1)]`."""

    value: int
    keyword = "minLength"
    of = ("string",)


@dataclass(frozen=True)
class MaxLength(Marker):
    """A text has at most so many characters: `Annotated[str, MaxLength(63)]`."""

    value: int
    keyword = "maxLength"
    of = ("string",)


@dataclass(frozen=True)
class Pattern(Marker):
    """A text matches the regular expression, in Go's syntax, somewhere: `Annotated[str, Pattern("^[a-z]+$")]`."""

    value: str
    keyword = "pattern"
    of = ("string",)


@dataclass(frozen=True)
class Format(Marker):
    """A text or number has the named OpenAPI format: `Annotated[str, Format("ipv4")]`."""

    value: str
    keyword = "format"
    of = ("string", *_NUMBERS)


@dataclass(frozen=True)
class MinItems(Marker):
    """A list has at least so many items: `Annotated[list[str], MinItems(1)]`."""

    value: int
    keyword = "minItems"
    of = ("array",)


@dataclass(frozen=True)
class MaxItems(Marker):
    """A list has at most so many items: `Annotated[list[str], MaxItems(10)]`."""

    value: int
    keyword = "maxItems"
    of = ("array",)


@dataclass(frozen=True)
class MinProperties(Marker):
    """A dict has at least so many entries: `Annotated[dict[str, str], MinProperties(1)]`."""

    value: int
    keyword = "minProperties"
    of = ("object",)


@dataclass(frozen=True)
class MaxProperties(Marker):
    """A dict has at most so many entries: `Annotated[dict[str, str], MaxProperties(10)]`."""

    value: int
    keyword = "maxProperties"
    of = ("object",)


@dataclass(frozen=True)
class ListMap(Marker):
    """Items are known by the named fields, each of them once: `Annotated[list[Port], ListMap("name")]`.

    The names are those on the wire. The fields must be required or have a default. Server-side apply merges such items.
    """

    keys: tuple[str, ...]
    of = ("array",)

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)

    def keywords(self, json_type: str) -> Json:
        return {LIST_TYPE: "map", LIST_MAP_KEYS: list(self.keys)}


@dataclass(frozen=True)
class ListSet(Marker):
    """No item is there twice, and server-side apply merges the items: `Annotated[list[str], ListSet()]`."""

    of = ("array",)

    def keywords(self, json_type: str) -> Json:
        return {LIST_TYPE: "set"}


@dataclass(frozen=True)
class Atomic(Marker):
    """Server-side apply takes the list, dict or object as a whole: `Annotated[dict[str, str], Atomic()]`."""

    of = ("array", "object")

    def keywords(self, json_type: str) -> Json:
        return {LIST_TYPE if json_type == "array" else MAP_TYPE: "atomic"}


@dataclass(frozen=True)
class Nullable(Marker):
    """null is a value of its own: `Annotated[int | None, Nullable()]`. Otherwise None means that a field is absent."""

    keyword = "nullable"


@dataclass(frozen=True)
class PreserveUnknown(Marker):
    """Fields that the schema does not know are kept: `Annotated[Settings, PreserveUnknown()]`."""

    keyword = PRESERVE


@dataclass(frozen=True)
class EmbeddedResource(Marker):
    """The value is a whole object, with its own kind and metadata: `Annotated[dict[str, Any], EmbeddedResource()]`."""

    keyword = EMBEDDED
    of = ("object",)


@dataclass(frozen=True)
class Name(Marker):
    """The name on the wire of a field, if it is not the camelCase of its own: `Annotated[str, Name("clusterIP")]`."""

    value: str


@dataclass(frozen=True)
class Description(Marker):
    """What people read about a value: `Annotated[int, Description("How many there are.")]`."""

    value: str
    keyword = "description"


@dataclass(frozen=True)
class Default(Marker):
    """The schema's default in JSON, such as a zero value, which otherwise is none: `Annotated[int, Default(0)]`."""

    value: Any
    keyword = "default"


@dataclass(frozen=True)
class Rule(Marker):
    """A CEL expression that holds for every value: `Annotated[int, Rule("self % 2 == 0", message="must be even")]`.

    A dataclass has its own in a class attribute: `rules: ClassVar[list[Rule]] = [Rule("self.low <= self.high")]`.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    def keywords(self, json_type: str) -> Json:
        said = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {VALIDATIONS: [{key: value for key, value in said.items() if value}]}
