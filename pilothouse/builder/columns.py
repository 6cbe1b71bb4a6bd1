"""What a kind says about its tables and its scale, in the words of CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. Its type is that of the field, unless it is given; with a priority above 0 it shows
    only in `-o wide`.

    >>> from pilothouse.builder import Column
    >>> Column("Reference", ".spec.reference", priority=1).title
    'Reference'
    """

    title: str
    path: str
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0

    def declared(self, schema: Json) -> Json:
        """Return it as an additionalPrinterColumn of the kind with this schema."""
        found = _at(schema, self.path)
        shown = {"name": self.title, "jsonPath": self.path, "type": self.type or _column_type(found)}
        extra = {"format": self.format, "description": self.description, "priority": self.priority}
        return shown | {key: value for key, value in extra.items() if value}


AGE = Column("Age", ".metadata.creationTimestamp", type="date")
"""How long ago the object was made."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the replicas of an object stand; `selector` is the path of a label selector as text.

    >>> from pilothouse.builder import Scale
    >>> Scale(selector=".status.selector").status
    '.status.replicas'
    """

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""

    def declared(self) -> Json:
        """Return it as the scale subresource of a definition."""
        paths = {"specReplicasPath": self.spec, "statusReplicasPath": self.status}
        return paths | ({"labelSelectorPath": self.selector} if self.selector else {})


def _at(schema: Any, path: str) -> Json:
    """Return the schema of the field, or an empty one where the path leads nowhere."""
    for name in path.strip(".").split("."):
        schema = (schema.get("properties") or {}).get(name, {})
    return dict(schema)


def _column_type(schema: Json) -> str:
    if schema.get("format") == "date-time":
        return "date"
    return str(schema["type"]) if schema.get("type") in ("integer", "number", "boolean") else "string"
