"""Tables, the output of `kubectl get`: rows made from the columns of a resource."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import age
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.schema import documentation

Cell: TypeAlias = Callable[[Json], Any]

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `documented` names a definition and field whose documentation describes the column.

    >>> from pilothouse.apiserver import Column
    >>> Column("Colour", lambda obj: obj["spec"]["colour"]).cell({"spec": {"colour": "red"}})
    'red'
    """

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""
    documented: tuple[str, str] | None = None
    versions: str = ""
    """Kubernetes versions with this column: `1.34-`, `1.35+`; empty = all."""
    headed: bool = True
    """False for a cell without a column definition, which upstream has in places."""
    row_conditions: Callable[[Json], list[Json]] | None = None
    """Returns the conditions of an object's row, such as Completed."""

    @property
    def definition(self) -> Json:
        text = documentation.of_column(*self.documented) if self.documented else self.description
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": text,
            "priority": self.priority,
        }


def _created(obj: Json) -> str | None:
    return (obj.get("metadata") or {}).get("creationTimestamp")


NAME = Column("Name", name_of, format="name", documented=(_OBJECT_META, "name"))
AGE = Column("Age", lambda obj: age(_created(obj)), documented=(_OBJECT_META, "creationTimestamp"))
CREATED_AT = Column(
    "Created At",
    lambda obj: _created(obj) or "0001-01-01T00:00:00Z",
    type="date",
    documented=(_OBJECT_META, "creationTimestamp"),
)

DEFAULT_COLUMNS: Sequence[Column] = (NAME, CREATED_AT)


def table_row(columns: Sequence[Column], obj: Json) -> Json:
    """Return the cells and conditions of the row of one object."""
    row: Json = {"cells": [column.cell(obj) for column in columns]}
    conditions = [each for column in columns if column.row_conditions for each in column.row_conditions(obj)]
    if conditions:
        row["conditions"] = conditions
    return row


def count(*fields: str) -> Cell:
    """Return a cell function that counts the entries of these maps or lists."""
    return lambda obj: sum(len(obj.get(field) or ()) for field in fields)
