"""JSON Schemas, as pydantic makes them, as structural schemas: definitions in their place, one type for each value."""

from __future__ import annotations

from typing import Any

from pilothouse.builder.types.fields import is_zero
from pilothouse.builder.types.form import Place
from pilothouse.extensions.schema.structural import INT_OR_STRING, LIST_TYPE, PRESERVE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_KEPT = (
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


def structural_schema(schema: Json, at: Place) -> Json:
    """Return the schema with its definitions in their place.

    None means absent, as everywhere here: what may be null is not required, and defaults that are zero are none.
    Raises TypeError, with the place, for what no structural schema can say, such as a definition within itself.
    """
    return _Conversion(schema.get("$defs") or {}).converted(schema, at, ())


@dataclass(frozen=True, slots=True)
class _Conversion:
    definitions: Json

    def converted(self, schema: Json, at: Place, inside: tuple[str, ...]) -> Json:
        schema, inside = self._resolved(schema, at, inside)
        kept = {key: value for key, value in schema.items() if key in _KEPT or key.startswith("x-kubernetes-")}
        out = kept | _bounds(schema) | self._items(schema, at, inside) | self._properties(schema, at, inside)
        if "const" in schema:
            out["enum"] = [schema["const"]]
        if not is_zero(schema.get("default")):
            out["default"] = _without_nulls(schema["default"])
        return _typed(out, at)

    def _resolved(self, schema: Json, at: Place, inside: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        """Replace references and unions by what they stand for. What stands beside them wins."""
        while any(key in schema for key in ("$ref", *_ALTERNATIVES)):
            beside = {key: value for key, value in schema.items() if key not in ("$ref", *_ALTERNATIVES)}
            if "$ref" in schema:
                name = schema["$ref"].removeprefix(_REFERENCE)
                if name in inside:
                    at.refuse(f"{name} contains itself, and the schema of an object has no end then")
                inside = (*inside, name)
                schema = {**self.definitions[name], **beside}
            else:
                schema = {**_only_member(schema, at), **beside}
        return schema, inside

    def _items(self, schema: Json, at: Place, inside: tuple[str, ...]) -> Json:
        if "prefixItems" in schema:
            at.refuse("a tuple has no schema: the items of a list are of one type")
        if schema.get("type") != "array":
            return {}
        items = self._item(schema.get("items") or {}, at, inside)
        return {"items": items, **({LIST_TYPE: "set"} if schema.get("uniqueItems") else {})}

    def _item(self, schema: Json, at: Place, inside: tuple[str, ...]) -> Json:
        """An item cannot be absent: where it may be None, it may be null."""
        converted = self.converted(schema, at.items(), inside)
        return {**converted, "nullable": True} if _allows_null(schema) else converted

    def _properties(self, schema: Json, at: Place, inside: tuple[str, ...]) -> Json:
        """Additional properties that are forbidden are not mentioned: they are pruned."""
        out: Json = {}
        properties, rest = schema.get("properties") or {}, schema.get("additionalProperties", False)
        if properties:
            out["properties"] = {
                name: self.converted(each, at.field(name), inside) for name, each in properties.items()
            }
        if required := [name for name in schema.get("required") or () if not _allows_null(properties[name])]:
            out["required"] = required
        if rest is not False:
            out |= {PRESERVE: True} if rest in (True, {}) else {"additionalProperties": self._item(rest, at, inside)}
        return out


def _typed(schema: Json, at: Place) -> Json:
    """The schema with what it says about its type; one that says nothing at all lets everything pass."""
    if not {"type", INT_OR_STRING, PRESERVE} & schema.keys():
        if schema.keys() - {"description", "default"}:
            at.refuse("its schema has no type, or more than one")
        return {**schema, PRESERVE: True}
    form = _FORMATS.get(schema.get("type") or "")
    return {"format": form, **schema} if form else schema


def _only_member(schema: Json, at: Place) -> Json:
    members = [each for key in _ALTERNATIVES for each in schema.get(key) or () if not _is_null(each)]
    if len(members) == 1:
        return dict(members[0])
    types = frozenset(each["type"] for each in members if each.keys() == {"type"})
    if types not in _UNIONS or len(types) != len(members):
        at.refuse("a value is of one type, or of int | str")
    return _UNIONS[types]


def _allows_null(schema: Json) -> bool:
    return any(map(_is_null, schema.get("anyOf") or ()))


def _is_null(schema: Json) -> bool:
    return schema.get("type") == "null"


def _bounds(schema: Json) -> Json:
    """Newer drafts have numbers where OpenAPI says that a bound is exclusive."""
    out: Json = {}
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if exclusive in schema:
            out |= {bound: schema[exclusive], exclusive: True}
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
