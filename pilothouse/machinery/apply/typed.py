"""Objects in one API version, and their conversion to others."""

from __future__ import annotations

from typing import Any, Protocol

from pilothouse.machinery.apply.atoms import Atom
from pilothouse.machinery.apply.compare import Comparison, compare
from pilothouse.machinery.apply.fieldset import FieldSet
from pilothouse.machinery.apply.mentioned_fields import field_set
from pilothouse.machinery.apply.remove import remove, with_named_fields
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Typed:
    """An object in one API version."""

    atom: Atom
    value: Any
    api_version: str

    def with_value(self, value: Any) -> Typed:
        return Typed(self.atom, value, self.api_version)

    def field_set(self) -> FieldSet:
        return field_set(self.atom, self.value)

    def named_field_set(self) -> FieldSet:
        """With the named fields on the way to each member."""
        return self.with_named_fields(self.field_set())

    def with_named_fields(self, fields: FieldSet) -> FieldSet:
        return with_named_fields(self.atom, fields)

    def remove(self, fields: FieldSet) -> Typed:
        return self.with_value(remove(self.atom, self.value, fields))

    def compare(self, new: Typed) -> Comparison:
        return compare(self.atom, self.value, new.value)


class Converter(Protocol):
    def convert(self, typed: Typed, api_version: str) -> Typed | None:
        """The object in another version; None where there is no such version."""
