"""Conversion between instances and JSON, schemas of types, and forms of annotations with their markers."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Literal, TypeVar, get_args, get_origin, is_typeddict

from pilothouse.builder.types.fields import Hint, Names, hint_of, is_struct, members_of
from pilothouse.builder.types.form import (
    INT_OR_TEXT,
    SCALARS,
    AnnotationPath,
    Form,
    enum_form,
    identity,
    literal_form,
    none,
)
from pilothouse.builder.types.markers import Marker
from pilothouse.builder.types.object_forms import dataclass_form, typed_dict_form
from pilothouse.builder.types.pydantic_models import is_model, model_form
from pilothouse.builder.types.writing import to_wire as to_wire
from pilothouse.extensions.schema.structural import PRESERVE, VALIDATIONS
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


WIRE_FORM = "__wire_form__"
"""Attribute of a class with its form; a class of its own form sets it."""
_ANYTHING = Form({PRESERVE: True}, identity, none)
_ANY_OBJECT = Form({"type": "object", PRESERVE: True}, identity, dict)


def form_of(annotation: Any, names: Names | None = None) -> Form:
    """Return the form of a type. Raises TypeError, with class and field, for a type without a schema.

    Forms of classes are cached on the class, with the `names` of the first call.
    """
    cached: Form | None = vars(annotation).get(WIRE_FORM) if isinstance(annotation, type) else None
    return cached or _form(
        annotation,
        AnnotationPath(annotation.__qualname__ if isinstance(annotation, type) else str(annotation), names=names),
    )


def _form(annotation: Any, at: AnnotationPath) -> Form:
    return hinted_form(hint_of(annotation), at)


def hinted_form(hint: Hint, at: AnnotationPath) -> Form:
    """Return the form of a type with its markers. If None is allowed, None is the zero value."""
    form = _of_type(hint.type, at)
    schema = marked(form.schema, hint.markers, at)
    return Form(schema, form.read, none if hint.allows_none else form.zero)


def _item_form(annotation: Any, at: AnnotationPath) -> Form:
    """Return the form of an item, which cannot be absent: an item that allows None is nullable."""
    hint = hint_of(annotation)
    form = hinted_form(hint, at)
    if not hint.allows_none:
        return form
    return Form({**form.schema, "nullable": True}, lambda value: value if value is None else form.read(value), none)


def marked(schema: Json, markers: tuple[Marker, ...], at: AnnotationPath) -> Json:
    """Return the schema with the keywords of the markers. Raises TypeError for a marker of another type."""
    out, json_type = dict(schema), schema.get("type") or ""
    for marker in markers:
        if marker.of and json_type not in marker.of:
            at.refuse(f"{marker} is for {' and '.join(marker.of)}, not for {json_type or 'any value'}")
        keywords = marker.keywords(json_type)
        if VALIDATIONS in keywords:
            keywords[VALIDATIONS] = [*out.get(VALIDATIONS, ()), *keywords[VALIDATIONS]]
        out |= keywords
    return out


def _of_type(type_: Any, at: AnnotationPath) -> Form:
    if isinstance(type_, dict):
        return Form(type_, identity, dict)
    if type_ in SCALARS:
        return SCALARS[type_]
    if type_ in (Any, object):
        return _ANYTHING
    if members := members_of(type_):
        return _union_form(set(members), type_, at)
    origin, arguments = get_origin(type_) or type_, get_args(type_)
    if origin is Literal:
        return literal_form(arguments, at)
    if origin is list:
        item = arguments[0] if arguments else Any
        form = _item_form(item, at.items())
        read_item = form.read

        def read(value: Any) -> Any:
            return [read_item(item) for item in value] if isinstance(value, list) else value

        return Form({"type": "array", "items": form.schema}, read, list)
    if origin is dict:
        return _dict_form(arguments or (str, Any), at)
    return _class_form(type_, at) if isinstance(type_, type) else at.refuse(f"{type_} has no schema")


def _union_form(members: set[Any], type_: Any, at: AnnotationPath) -> Form:
    if members == {int, str}:
        return INT_OR_TEXT
    if members == {int, float}:
        return SCALARS[float]
    return at.refuse(f"{type_} has no schema: a value is of one type, or of int | str")


def _dict_form(arguments: tuple[Any, ...], at: AnnotationPath) -> Form:
    key, item = arguments
    if key is not str:
        at.refuse(f"{key} cannot be a key: JSON keys are str")
    if hint_of(item).type in (Any, object):
        return _ANY_OBJECT
    form = _item_form(item, at.items())
    read_item = form.read

    def read(value: Any) -> Any:
        return {key: read_item(item) for key, item in value.items()} if isinstance(value, dict) else value

    return Form({"type": "object", "additionalProperties": form.schema}, read, dict)


def _class_form(cls: type, at: AnnotationPath) -> Form:
    form: Form | None = vars(cls).get(WIRE_FORM)
    if form is None:
        form = _new_class_form(cls, at)
        setattr(cls, WIRE_FORM, form)
    return form


def _new_class_form(cls: type, at: AnnotationPath) -> Form:
    if issubclass(cls, Enum):
        return enum_form(cls, at)
    if dataclasses.is_dataclass(cls) or is_struct(cls):
        return dataclass_form(cls, at.within(cls), hinted_form)
    if is_typeddict(cls):
        return typed_dict_form(cls, at.within(cls), hinted_form)
    if is_model(cls):
        return model_form(cls, at.within(cls), hinted_form)
    return at.refuse(f"{cls.__qualname__} has no schema")
