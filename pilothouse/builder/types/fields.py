"""The fields of a dataclass on the wire: their names, whether they must be there, and when they are left out.

A default that is the zero value of its type means "optional, left out when empty", as Go's `omitempty` does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING
from enum import Enum
from typing import Any

from pilothouse.builder.types.hints import Hint, Names, hint_of, resolved
from pilothouse.builder.types.markers import Default, Name, Nullable
from pilothouse.machinery.dataclass import dataclass

_FIELDS = "__wire_fields__"


@dataclass(frozen=True, slots=True)
class WireField:
    name: str
    wire_name: str
    hint: Hint
    default: Any
    """What the class gives when nothing is given; MISSING without a default."""

    is_required: bool
    is_nullable: bool
    is_left_out_when_empty: bool

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    def leaves_out(self, value: Any) -> bool:
        """Whether an object is written without the field when this is its value."""
        if value is None:
            return not self.is_nullable or self.default is None
        return self.is_left_out_when_empty and bool(value == self.default)


def fields_of(cls: type, names: Names | None = None) -> tuple[WireField, ...]:
    """Return the fields of a dataclass, except those that it makes itself (`init=False`).

    They are found out once for each class, with the names that were given then, and kept on it.
    Raises TypeError for annotations that cannot be resolved.
    """
    found: tuple[WireField, ...] | None = cls.__dict__.get(_FIELDS)
    if found is None:
        found = tuple(_wire_field(cls, each, names) for each in dataclasses.fields(cls) if each.init)
        setattr(cls, _FIELDS, found)
    return found


def _wire_field(cls: type, field: dataclasses.Field[Any], names: Names | None) -> WireField:
    hint = hint_of(resolved(cls, field.name, names))
    name, has_own_default = hint.marked(Name), hint.marked(Default) is not None
    is_nullable = hint.marked(Nullable) is not None
    default = field.default if field.default_factory is MISSING else field.default_factory()
    may_be_absent = default is not MISSING or has_own_default or (hint.allows_none and not is_nullable)
    return WireField(
        name=field.name,
        wire_name=name.value if name else camel_case(field.name),
        hint=hint,
        default=default,
        is_required=not may_be_absent,  # None means absent, so that what may be None may be absent
        is_nullable=is_nullable,
        is_left_out_when_empty=not has_own_default and is_zero(default, names),
    )


def camel_case(name: str) -> str:
    """Return the name as it is on the wire: reference_type → referenceType, from_ → from."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def is_zero(value: Any, names: Names | None = None) -> bool:
    """Whether a value is what Go calls empty; of an object, whether all its fields are left out."""
    if isinstance(value, Enum):
        return is_zero(value.value)
    if is_object(value):
        return all(field.leaves_out(getattr(value, field.name)) for field in fields_of(type(value), names))
    return value is None or (isinstance(value, str | int | float | bytes | list | dict) and not value)


def is_object(value: Any) -> bool:
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
