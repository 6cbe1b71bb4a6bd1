"""Pydantic models. pydantic is never imported here: whoever has a model has imported it.

JSON names are pydantic's aliases: `ConfigDict(alias_generator=to_camel)` gives Kubernetes' names.
"""

from __future__ import annotations

import sys
from typing import Any

from pilothouse.builder.types.fields import hint_of, is_zero
from pilothouse.builder.types.form import AnnotationPath, Form, FormOf, identity, none
from pilothouse.extensions.schema.structural import INT_OR_STRING, LIST_TYPE, PRESERVE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


def is_model(type_: Any) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(type_, type) and issubclass(type_, pydantic.BaseModel)


def write_model(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def model_form(model: Any, at: AnnotationPath, form_of: FormOf) -> Form:
    """Return the form of a model. Raises TypeError for a model without a structural schema."""
    schema = structural_schema(model.model_json_schema(by_alias=True), at)
    forms = {name: _form_or_anything(info.annotation, at.field(name), form_of) for name, info in _fields(model)}
    absent = {info.alias or name: None for name, info in _fields(model) if _may_be_absent(info)}

    def read(value: Any) -> Any:
        try:
            return model.model_validate(absent | value if isinstance(value, dict) else value)
        except ValueError:  # the schema validates; an invalid object is still read as far as possible
            return _constructed(model, forms, value) if isinstance(value, dict) else value

    return Form(schema, read, lambda: read({}))


def _fields(model: Any) -> list[tuple[str, Any]]:
    return list(model.model_fields.items())


def _may_be_absent(info: Any) -> bool:
    """Whether an absent field must be set to None, because pydantic requires it."""
    return info.is_required() and hint_of(info.annotation).allows_none


def _form_or_anything(annotation: Any, at: AnnotationPath, form_of: FormOf) -> Form:
    """Return the form; any value for types that only pydantic knows."""
    try:
        return form_of(hint_of(annotation), at)
    except TypeError:
        return Form({}, identity, none)


def _constructed(model: Any, forms: dict[str, Form], value: Json) -> Any:
    """Return an instance without validation. Missing fields get the model's default or the zero value of their type."""
    given: dict[str, Any] = {}
    for name, info in _fields(model):
        child = value.get(info.alias or name)
        if child is not None:
            given[name] = forms[name].read(child)
        elif info.is_required():
            given[name] = forms[name].zero()
    return model.model_construct(**given)


_KEYWORDS = (
    *("type", "description", "format", "enum", "pattern", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "minimum", "maximum", "multipleOf", "nullable"),
)
_FORMATS = {"integer": "int64", "number": "double"}
_UNIONS: dict[frozenset[str], Json] = {
    frozenset({"integer", "string"}): {INT_OR_STRING: True},
    frozenset({"integer", "number"}): {"type": "number"},
}
_ALTERNATIVES = ("anyOf", "allOf", "oneOf")
_REFERENCE = "#/$defs/"


def structural_schema(schema: Json, at: AnnotationPath) -> Json:
    """Convert a JSON schema to a structural schema, with definitions inlined.

    None means absent: nullable fields are optional, and zero defaults are dropped. Raises TypeError, with the path, for
    schemas without a structural form, such as recursive definitions.
    """
    return _Conversion(schema.get("$defs") or {}).convert(schema, at, ())


@dataclass(frozen=True, slots=True)
class _Conversion:
    definitions: Json

    def convert(self, schema: Json, at: AnnotationPath, inside: tuple[str, ...]) -> Json:
        schema, inside = self._resolved(schema, at, inside)
        keywords = {key: value for key, value in schema.items() if key in _KEYWORDS or key.startswith("x-kubernetes-")}
        out = keywords | _bounds(schema) | self._items(schema, at, inside) | self._properties(schema, at, inside)
        if "const" in schema:
            out["enum"] = [schema["const"]]
        if not is_zero(schema.get("default")):
            out["default"] = _without_nulls(schema["default"])
        return _typed(out, at)

    def _resolved(self, schema: Json, at: AnnotationPath, inside: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """Replace references and unions by their targets. Sibling keywords take precedence."""
        while any(key in schema for key in ("$ref", *_ALTERNATIVES)):
            siblings = {key: value for key, value in schema.items() if key not in ("$ref", *_ALTERNATIVES)}
            if "$ref" in schema:
                name = schema["$ref"].removeprefix(_REFERENCE)
                if name in inside:
                    at.refuse(f"{name} contains itself: a recursive type has no schema")
                inside = (*inside, name)
                schema = {**self.definitions[name], **siblings}
            else:
                schema = {**_only_member(schema, at), **siblings}
        return schema, inside

    def _items(self, schema: Json, at: AnnotationPath, inside: tuple[str, ...]) -> Json:
        if "prefixItems" in schema:
            at.refuse("a tuple has no schema: the items of a list are of one type")
        if schema.get("type") != "array":
            return {}
        items = self._item(schema.get("items") or {}, at, inside)
        return {"items": items, **({LIST_TYPE: "set"} if schema.get("uniqueItems") else {})}

    def _item(self, schema: Json, at: AnnotationPath, inside: tuple[str, ...]) -> Json:
        """Convert the schema of an item, which cannot be absent: an item that allows None is nullable."""
        converted = self.convert(schema, at.items(), inside)
        return {**converted, "nullable": True} if _allows_null(schema) else converted

    def _properties(self, schema: Json, at: AnnotationPath, inside: tuple[str, ...]) -> Json:
        """Convert the properties. Forbidden additional properties are dropped from the schema: the server prunes
        them.
        """
        out: Json = {}
        properties, rest = schema.get("properties") or {}, schema.get("additionalProperties", False)
        if properties:
            out["properties"] = {
                name: self.convert(child, at.field(name), inside) for name, child in properties.items()
            }
        if required := [name for name in schema.get("required") or () if not _allows_null(properties[name])]:
            out["required"] = required
        if rest is not False:
            out |= {PRESERVE: True} if rest in (True, {}) else {"additionalProperties": self._item(rest, at, inside)}
        return out


def _typed(schema: Json, at: AnnotationPath) -> Json:
    """Complete the type of a schema. A schema without a type accepts any value."""
    if not {"type", INT_OR_STRING, PRESERVE} & schema.keys():
        if schema.keys() - {"description", "default"}:
            at.refuse("its schema has no type, or more than one")
        return {**schema, PRESERVE: True}
    form = _FORMATS.get(schema.get("type") or "")
    return {"format": form, **schema} if form else schema


def _only_member(schema: Json, at: AnnotationPath) -> Json:
    members = [member for key in _ALTERNATIVES for member in schema.get(key) or () if not _is_null(member)]
    if len(members) == 1:
        return dict(members[0])
    types = frozenset(member["type"] for member in members if member.keys() == {"type"})
    if types not in _UNIONS or len(types) != len(members):
        at.refuse("a value is of one type, or of int | str")
    return _UNIONS[types]


def _allows_null(schema: Json) -> bool:
    return any(map(_is_null, schema.get("anyOf") or ()))


def _is_null(schema: Json) -> bool:
    return schema.get("type") == "null"


def _bounds(schema: Json) -> Json:
    """Convert exclusive bounds: newer drafts use numbers, OpenAPI v3.0 uses booleans."""
    out: Json = {}
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if exclusive in schema:
            out |= {bound: schema[exclusive], exclusive: True}
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
