"""Conversion between instances and JSON, and schemas of types."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pilothouse.builder.types.forms import form_of
from pilothouse.builder.types.hints import Names
from pilothouse.builder.types.writing import to_wire as to_wire
from pilothouse.machinery.objects import Json, deep_equal


def schema_of(type_: Any, *, names: Names | None = None) -> Json:
    """Return the structural OpenAPI v3 schema of an annotation, without references and shared parts.

    `names` resolves names in annotations that only a function or an unfinished class knows. A dict is a schema, and is
    returned unchanged. Raises TypeError, with class and field, for a type without a schema, such as a recursive type.

    >>> schema_of(list[str])
    {'type': 'array', 'items': {'type': 'string'}}
    """
    return type_ if isinstance(type_, dict) else copy.deepcopy(form_of(type_, names).schema)


T = TypeVar("T")
_ABSENT = object()


def from_wire(type_: Any, value: Any, *, names: Names | None = None) -> Any:
    """Return a JSON value as an instance of the type.

    An absent field gets its default; an absent required field gets the zero value of its type, because objects are read
    before validation. Unknown fields are ignored. An unreadable time is Go's zero time. Untyped dicts are shared
    between
    the JSON and the instance. Raises TypeError for a type without a schema.
    """
    return form_of(type_, names).read(value)


@contextmanager
def changing(cls: type[T], obj: Json) -> Iterator[T]:
    """Yield the object as an instance, and apply the block's changes to the object. Nothing changes if the block
    raises.
    """
    typed = from_wire(cls, obj)
    before = to_wire(typed)
    yield typed
    apply_changes(obj, before, to_wire(typed))


def apply_changes(obj: Json, before: Json, after: Json) -> None:
    """Apply the difference between `before` and `after` to the object.

    Everything else is kept, such as explicit zero values and unknown fields. A changed list is replaced as a whole.
    """
    for key in {**before, **after}:
        old, new = before.get(key, _ABSENT), after.get(key, _ABSENT)
        if deep_equal(old, new):
            continue
        if new is _ABSENT:
            obj.pop(key, None)
        elif isinstance(new, dict) and isinstance(obj.get(key), dict):
            apply_changes(obj[key], old if isinstance(old, dict) else {}, new)
        else:
            obj[key] = new
