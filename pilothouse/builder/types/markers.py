"""Markers of annotations, as in `Annotated[int, Minimum(1), Description("Number of replicas.")]`."""

from __future__ import annotations

from typing import Any

from pilothouse.builder.types.bounds import Format as Format
from pilothouse.builder.types.bounds import Marker as Marker
from pilothouse.builder.types.bounds import Maximum as Maximum
from pilothouse.builder.types.bounds import MaxItems as MaxItems
from pilothouse.builder.types.bounds import MaxLength as MaxLength
from pilothouse.builder.types.bounds import MaxProperties as MaxProperties
from pilothouse.builder.types.bounds import Minimum as Minimum
from pilothouse.builder.types.bounds import MinItems as MinItems
from pilothouse.builder.types.bounds import MinLength as MinLength
from pilothouse.builder.types.bounds import MinProperties as MinProperties
from pilothouse.builder.types.bounds import MultipleOf as MultipleOf
from pilothouse.builder.types.bounds import Pattern as Pattern
from pilothouse.extensions.schema import structural
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True)
class ListMap(Marker):
    """A list whose items are identified by the named fields; server-side apply merges the items by these keys.

    The names are JSON names. The fields must be required or have a default.

    >>> from typing import Annotated
    >>> from pilothouse.builder import ListMap
    >>> Parts = Annotated[list[dict[str, str]], ListMap("name")]
    """

    keys: tuple[str, ...]
    of = ("array",)

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)

    def keywords(self, json_type: str) -> Json:
        return {structural.LIST_TYPE: "map", structural.LIST_MAP_KEYS: list(self.keys)}


@dataclass(frozen=True)
class ListSet(Marker):
    """A list of unique items; server-side apply merges the items.

    >>> from typing import Annotated
    >>> from pilothouse.builder import ListSet
    >>> Finalizers = Annotated[list[str], ListSet()]
    """

    of = ("array",)

    def keywords(self, json_type: str) -> Json:
        return {structural.LIST_TYPE: "set"}


@dataclass(frozen=True)
class Atomic(Marker):
    """Server-side apply replaces the list, dict or object as a whole.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Atomic
    >>> Selector = Annotated[dict[str, str], Atomic()]
    """

    of = ("array", "object")

    def keywords(self, json_type: str) -> Json:
        return {structural.LIST_TYPE if json_type == "array" else structural.MAP_TYPE: "atomic"}


@dataclass(frozen=True)
class Nullable(Marker):
    """null is a value. Without this marker, None means that the field is absent.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Nullable
    >>> Weight = Annotated[int | None, Nullable()]
    """

    keyword = "nullable"


@dataclass(frozen=True)
class PreserveUnknown(Marker):
    """Unknown fields of the object are preserved.

    >>> from typing import Annotated
    >>> from pilothouse.builder import PreserveUnknown
    >>> Settings = Annotated[dict[str, str], PreserveUnknown()]
    """

    keyword = structural.PRESERVE
    of = ("object",)


@dataclass(frozen=True)
class EmbeddedResource(Marker):
    """The value is a complete object with apiVersion, kind and metadata.

    >>> from typing import Annotated, Any
    >>> from pilothouse.builder import EmbeddedResource
    >>> Template = Annotated[dict[str, Any], EmbeddedResource()]
    """

    keyword = structural.EMBEDDED
    of = ("object",)


@dataclass(frozen=True)
class Name(Marker):
    """JSON name of a field; default: the camelCase form of its Python name.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Name
    >>> ClusterIP = Annotated[str, Name("clusterIP")]
    """

    value: str


@dataclass(frozen=True)
class Description(Marker):
    """Description of a value in the schema.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Description
    >>> Replicas = Annotated[int, Description("Number of replicas.")]
    """

    value: str
    keyword = "description"


@dataclass(frozen=True)
class Default(Marker):
    """Default in the schema, as JSON. Overrides the default of the field.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Default
    >>> Replicas = Annotated[int, Default(0)]
    """

    value: Any
    keyword = "default"


@dataclass(frozen=True)
class Rule(Marker):
    """A CEL expression that every value must satisfy.

    A dataclass lists its rules in a class attribute: `rules: ClassVar[list[Rule]] = [Rule("self.low <= self.high")]`.

    >>> from typing import Annotated
    >>> from pilothouse.builder import Rule
    >>> Even = Annotated[int, Rule("self % 2 == 0", message="must be even")]
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    def keywords(self, json_type: str) -> Json:
        fields = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {structural.VALIDATIONS: [{key: value for key, value in fields.items() if value}]}
