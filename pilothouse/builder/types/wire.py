"""Between instances and JSON: read what clients sent, write what authors made, and keep what nobody touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pilothouse.builder.types.forms import form_of
from pilothouse.builder.types.hints import Names
from pilothouse.builder.types.writing import to_wire as to_wire
from pilothouse.machinery.equality import deep_equal
from pilothouse.machinery.objects import Json

T = TypeVar("T")
_ABSENT = object()


def from_wire(type_: Any, value: Any, *, names: Names | None = None) -> Any:
    """Return a JSON value as an instance of the type.

    An absent field gets its default, or the zero value of its type where it should have been there: objects are read
    before they are validated. Unknown fields are ignored. A time that cannot be read is Go's zero time. Dicts of
    anything are the same objects in JSON and in the instance. Raises TypeError for a type that has no schema.
    """
    return form_of(type_, names).read(value)


@contextmanager
def changing(cls: type[T], obj: Json) -> Iterator[T]:
    """Give the object as an instance, and do to the object what the block does to that, and nothing else.

    Nothing is done when the block raises.
    """
    typed = from_wire(cls, obj)
    before = to_wire(typed)
    yield typed
    apply_changes(obj, before, to_wire(typed))


def apply_changes(obj: Json, before: Json, after: Json) -> None:
    """Do to the object what was done between `before` and `after`, and leave everything else in it as it is.

    What instances do not say, such as explicit zero values and unknown fields, thus survives a change of the rest.
    A list that changed is replaced as a whole.
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
