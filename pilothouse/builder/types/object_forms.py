"""Forms of dataclasses and TypedDicts. The keys of a TypedDict are its JSON names."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NotRequired, Required, get_args, get_origin

from pilothouse.builder.types.fields import WireField, fields_of, hint_of, resolved
from pilothouse.builder.types.form import AnnotationPath, Form, FormOf, Read
from pilothouse.builder.types.markers import Default, Description, Rule
from pilothouse.builder.types.writing import default_on_wire
from pilothouse.extensions.schema.structural import VALIDATIONS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class _FieldReader:
    """Reader of one field of a dataclass."""

    name: str
    wire_name: str
    read: Read
    absent: Callable[[], Any] | None
    """Factory of the value of an absent field; None if the class has a default."""
    is_nullable: bool


def dataclass_form(cls: type, at: AnnotationPath, form_of: FormOf) -> Form:
    schema, forms = _dataclass_schema(cls, at, form_of)
    readings = [_reading(field, form) for field, form in forms]

    def read(value: Any) -> Any:
        return _read_object(cls, readings, value) if isinstance(value, dict) else value

    return Form(schema, read, lambda: read({}))


def _dataclass_schema(cls: type, at: AnnotationPath, form_of: FormOf) -> tuple[Json, list[tuple[WireField, Form]]]:
    forms = [(field, form_of(field.hint, at.field(field.name))) for field in fields_of(cls, at.names)]
    schema = _object_schema(cls, [field.wire_name for field, _ in forms if field.is_required])
    descriptions = field_descriptions(cls)
    for field, form in forms:
        if field.wire_name in schema["properties"]:
            at.field(field.name).refuse(f"another field is called {field.wire_name} on the wire")
        description = descriptions.get(field.name)
        keywords: Json = {}
        if description and field.hint.marked(Description) is None:
            keywords["description"] = description
        if field.hint.marked(Default) is None and (default := default_on_wire(field)) is not None:
            keywords["default"] = default
        schema["properties"][field.wire_name] = {**form.schema, **keywords}
    if rules := _rules(cls, {field.name for field, _ in forms}):
        schema[VALIDATIONS] = rules
    return schema, forms


def _object_schema(cls: type, required: list[str]) -> Json:
    description = class_description(cls)
    keywords = {"description": description} if description else {}
    return {"type": "object", **keywords, **({"required": required} if required else {}), "properties": {}}


def _rules(cls: type, fields: Iterable[str]) -> list[Json]:
    """Return the rules of the class, unless `rules` is a field."""
    declared = () if "rules" in fields else getattr(cls, "rules", ())
    return [
        validation for rule in declared if isinstance(rule, Rule) for validation in rule.keywords("object")[VALIDATIONS]
    ]


def _reading(field: WireField, form: Form) -> _FieldReader:
    own_default = field.hint.marked(Default)
    absent: Callable[[], Any] | None = None
    if not field.has_default:
        absent = form.zero if own_default is None else lambda: form.read(copy.deepcopy(own_default.value))
    return _FieldReader(field.name, field.wire_name, form.read, absent, field.is_nullable)


def _read_object(cls: type, readings: list[_FieldReader], value: Json) -> Any:
    given: dict[str, Any] = {}
    for field in readings:
        child = value.get(field.wire_name)
        if child is not None:
            given[field.name] = field.read(child)
        elif field.is_nullable and field.wire_name in value:
            given[field.name] = None
        elif field.absent is not None:
            given[field.name] = field.absent()
    return cls(**given)


def typed_dict_form(cls: Any, at: AnnotationPath, form_of: FormOf) -> Form:
    """Return the form of a TypedDict. Values stay dicts, unknown keys are kept, and None is null."""
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
        return {key: readers[key](item) if key in readers else item for key, item in value.items()}

    return Form(schema, read, dict)


def _is_required(cls: Any, key: str, at: AnnotationPath) -> bool:
    origin = get_origin(resolved(cls, key, at.names))
    is_explicit = origin in (Required, NotRequired)
    return origin is Required if is_explicit else key in cls.__required_keys__


def class_description(cls: type) -> str:
    """Return the class's own docstring; empty if the dataclass decorator generated it."""
    text = cls.__dict__.get("__doc__") or ""
    is_generated = text == cls.__name__ or text.startswith(f"{cls.__name__}(")
    return "" if is_generated else inspect.cleandoc(text)


def field_descriptions(cls: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and its bases; empty without source code."""
    descriptions: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        descriptions.update(_field_docstrings(base))
    return descriptions


def _field_docstrings(cls: type) -> Iterator[tuple[str, str]]:
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return
    body = parsed.body[0].body if isinstance(parsed.body[0], ast.ClassDef) else []
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
