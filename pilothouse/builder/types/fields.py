"""JSON fields of a dataclass: their names, whether they are required, and when they are omitted.

A default that is the zero value of its type means "optional, omitted when empty", as Go's `omitempty`.
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
    """Default of the class; MISSING without a default."""

    is_required: bool
    is_nullable: bool
    omit_empty: bool

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    def omits(self, value: Any) -> bool:
        """Whether the field is omitted for this value."""
        if value is None:
            return not self.is_nullable or self.default is None
        return self.omit_empty and bool(value == self.default)


def fields_of(cls: type, names: Names | None = None) -> tuple[WireField, ...]:
    """Return the fields of a dataclass, without `init=False` fields.

    The result is cached on the class, with the `names` of the first call. Raises TypeError for unresolvable
    annotations.
    """
    fields: tuple[WireField, ...] | None = cls.__dict__.get(_FIELDS)
    if fields is None:
        fields = tuple(_wire_field(cls, field, names) for field in dataclasses.fields(cls) if field.init)
        setattr(cls, _FIELDS, fields)
    return fields


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
        is_required=not may_be_absent,  # None means absent, so a field that allows None is optional
        is_nullable=is_nullable,
        omit_empty=not has_own_default and is_zero(default, names),
    )


def camel_case(name: str) -> str:
    """Return the JSON name: reference_type → referenceType, from_ → from."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def is_zero(value: Any, names: Names | None = None) -> bool:
    """Whether the value is empty in Go's sense; an object is empty if it omits all fields."""
    if isinstance(value, Enum):
        return is_zero(value.value)
    if is_object(value):
        return all(field.omits(getattr(value, field.name)) for field in fields_of(type(value), names))
    return value is None or (isinstance(value, str | int | float | bytes | list | dict) and not value)


def is_object(value: Any) -> bool:
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
