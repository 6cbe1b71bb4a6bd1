"""The forms of classes with fields: dataclasses, and TypedDicts, whose keys are those on the wire."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NotRequired, Required, get_args, get_origin

from pilothouse.builder.types.descriptions import class_description, field_descriptions
from pilothouse.builder.types.fields import WireField, fields_of
from pilothouse.builder.types.form import Form, FormOf, Place, Read
from pilothouse.builder.types.hints import hint_of, resolved
from pilothouse.builder.types.markers import Default, Description, Rule
from pilothouse.builder.types.writing import default_on_wire
from pilothouse.extensions.schema.structural import VALIDATIONS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class _Reading:
    """How one field of a dataclass is read."""

    name: str
    wire_name: str
    read: Read
    absent: Callable[[], Any] | None
    """None where the class itself knows what is there without the field."""
    is_nullable: bool


def dataclass_form(cls: type, at: Place, form_of: FormOf) -> Form:
    schema, forms = _dataclass_schema(cls, at, form_of)
    readings = [_reading(field, form) for field, form in forms]

    def read(value: Any) -> Any:
        return _read_object(cls, readings, value) if isinstance(value, dict) else value

    return Form(schema, read, lambda: read({}))


def _dataclass_schema(cls: type, at: Place, form_of: FormOf) -> tuple[Json, list[tuple[WireField, Form]]]:
    forms = [(field, form_of(field.hint, at.field(field.name))) for field in fields_of(cls, at.names)]
    schema = _object_schema(cls, [field.wire_name for field, _ in forms if field.is_required])
    descriptions = field_descriptions(cls)
    for field, form in forms:
        if field.wire_name in schema["properties"]:
            at.field(field.name).refuse(f"another field is called {field.wire_name} on the wire")
        description = descriptions.get(field.name)
        said: Json = {}
        if description and field.hint.marked(Description) is None:
            said["description"] = description
        if field.hint.marked(Default) is None and (default := default_on_wire(field)) is not None:
            said["default"] = default
        schema["properties"][field.wire_name] = {**form.schema, **said}
    if rules := _rules(cls, {field.name for field, _ in forms}):
        schema[VALIDATIONS] = rules
    return schema, forms


def _object_schema(cls: type, required: list[str]) -> Json:
    description = class_description(cls)
    said = {"description": description} if description else {}
    return {"type": "object", **said, **({"required": required} if required else {}), "properties": {}}


def _rules(cls: type, fields: Iterable[str]) -> list[Json]:
    """The rules of the class, unless `rules` is a field of its objects."""
    said = () if "rules" in fields else getattr(cls, "rules", ())
    return [each for rule in said if isinstance(rule, Rule) for each in rule.keywords("object")[VALIDATIONS]]


def _reading(field: WireField, form: Form) -> _Reading:
    own_default = field.hint.marked(Default)
    absent: Callable[[], Any] | None = None
    if not field.has_default:
        absent = form.zero if own_default is None else lambda: form.read(copy.deepcopy(own_default.value))
    return _Reading(field.name, field.wire_name, form.read, absent, field.is_nullable)


def _read_object(cls: type, readings: list[_Reading], value: Json) -> Any:
    given: dict[str, Any] = {}
    for field in readings:
        found = value.get(field.wire_name)
        if found is not None:
            given[field.name] = field.read(found)
        elif field.is_nullable and field.wire_name in value:
            given[field.name] = None
        elif field.absent is not None:
            given[field.name] = field.absent()
    return cls(**given)


def typed_dict_form(cls: Any, at: Place, form_of: FormOf) -> Form:
    """A TypedDict is read as a dict with the same keys, also those that it does not name, and its None is null."""
    readers: dict[str, Read] = {}
    schema = _object_schema(cls, sorted(key for key in cls.__annotations__ if _is_required(cls, key, at)))
    for key in cls.__annotations__:
        annotation = resolved(cls, key, at.names)
        hint = hint_of(get_args(annotation)[0] if get_origin(annotation) in (Required, NotRequired) else annotation)
        form = form_of(hint, at.field(key))
        schema["properties"][key] = {**form.schema, "nullable": True} if hint.allows_none else form.schema
        readers[key] = form.read

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: readers[key](each) if key in readers else each for key, each in value.items()}

    return Form(schema, read, dict)


def _is_required(cls: Any, key: str, at: Place) -> bool:
    origin = get_origin(resolved(cls, key, at.names))
    is_said = origin in (Required, NotRequired)
    return origin is Required if is_said else key in cls.__required_keys__
