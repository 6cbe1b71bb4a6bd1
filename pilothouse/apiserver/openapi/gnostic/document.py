"""Encodes documents as gnostic's messages; keys for which those have no field are left out.

Free values and vendor extensions travel as YAML text, and JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from pilothouse.apiserver.openapi.gnostic.fields import FIELDS, V3_FIELDS, MessageField
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.wire import BYTES, FIXED64, VARINT, delimited, tag, varint

_YAML = 2
"""The field of Any that has its text."""
_NON_BODY = {"query": (3, "QueryParameter"), "path": (4, "PathParameter")}
"""The field of NonBodyParameter for each location, and the message in it."""


def encode_document(document: Json) -> bytes:
    """Return the message of a v2 document."""
    return V2Writer(FIELDS).message("Document", document)


def encode_v3_document(document: Json) -> bytes:
    return V3Writer(V3_FIELDS).message("Document", document)


class GnosticWriter:
    """Writes the messages of a table. What the table cannot say of a form, `form` of the version does."""

    def __init__(self, messages: dict[str, dict[str, MessageField]]) -> None:
        self._messages = messages

    def message(self, name: str, value: Json) -> bytes:
        return b"".join(self._fields(self._messages[name], value))

    def form(self, form: str, value: Any) -> bytes:
        """The content of a message; those with an alternative in them say which one it is by a field."""
        match form:
            case "any":
                return any_value(value)
            case "SecurityRequirement":
                return b"".join(nested(1, named(name, _strings(scopes))) for name, scopes in value.items())
            case _ if form.endswith("OrReference"):
                return (
                    nested(2, self.message("Reference", value))
                    if "$ref" in value
                    else nested(1, self.form(form.removesuffix("OrReference"), value))
                )
            case _:
                return self.message(form, value)

    def entries(self, number: int, form: str, value: Json) -> bytes:
        """A map, as gnostic has it: a repeated field of names with values."""
        return b"".join(nested(number, named(name, self.form(form, item))) for name, item in value.items())

    def _fields(self, fields: dict[str, MessageField], value: Json) -> Iterator[bytes]:
        for key, item in value.items():
            if key in fields:
                yield self._field(fields[key], item)
            elif key.startswith("x-"):
                yield nested(fields["x"].number, named(key, any_value(item)))

    def _field(self, field: MessageField, value: Any) -> bytes:
        if field.mapped:
            return nested(field.number, self.entries(1, field.form, value))
        if field.repeated:
            return b"".join(self._single(field, item) for item in value)
        return self._single(field, value)

    def _single(self, field: MessageField, value: Any) -> bytes:
        scalar = SCALARS.get(field.form)
        return scalar(field.number, value) if scalar else nested(field.number, self.form(field.form, value))


class V2Writer(GnosticWriter):
    def form(self, form: str, value: Any) -> bytes:
        match form:
            case "Paths":
                return self.entries(2, "PathItem", value)
            case "Responses":
                return self.entries(1, "ResponseOrReference", value)
            case "Parameter":
                location = value["in"]
                if location == "body":
                    return nested(1, self.message("BodyParameter", value))
                number, message = _NON_BODY[location]
                return nested(2, nested(number, self.message(message, value)))
            case "ResponseSchema" | "Items":
                return nested(1, self.message("Schema", value))
            case "SchemaOrBool":
                is_bool = isinstance(value, bool)
                return SCALARS["bool"](2, value) if is_bool else nested(1, self.message("Schema", value))
            case "Type":
                return SCALARS["string"](1, value)
            case "SecurityDefinition":
                return nested(2, self.message("ApiKey", value))
            case _:
                return super().form(form, value)


class V3Writer(GnosticWriter):
    def form(self, form: str, value: Any) -> bytes:
        match form:
            case "Paths":
                return self.entries(1, "PathItem", value)
            case "Responses":
                return self.entries(2, "ResponseOrReference", value)
            case "Items":
                return nested(1, self.form("SchemaOrReference", value))
            case "SchemaOrBool":
                is_bool = isinstance(value, bool)
                return SCALARS["bool"](2, value) if is_bool else nested(1, self.form("SchemaOrReference", value))
            case "Default":
                return _default(value)
            case _:
                return super().form(form, value)


def _default(value: Any) -> bytes:
    """Objects and lists have no place in the message: it says only that there is a default."""
    if isinstance(value, bool):
        return SCALARS["bool"](2, value)
    if isinstance(value, str):
        return string(3, value)
    return double(1, value) if isinstance(value, int | float) else b""


def _strings(values: list[str]) -> bytes:
    return b"".join(SCALARS["string"](1, value) for value in values)


def nested(number: int, content: bytes) -> bytes:
    return delimited(tag(number, BYTES), content)


def named(name: str, content: bytes) -> bytes:
    """The content of an entry of a map."""
    return string(1, name) + nested(2, content)


def any_value(value: Any) -> bytes:
    """The content of an Any."""
    return nested(_YAML, orjson.dumps(value))


def string(number: int, value: str) -> bytes:
    return nested(number, value.encode())


def boolean(number: int, value: bool) -> bytes:
    return tag(number, VARINT) + varint(value)


def integer(number: int, value: int) -> bytes:
    return tag(number, VARINT) + varint(value)


def double(number: int, value: float) -> bytes:
    return tag(number, FIXED64) + struct.pack("<d", value)


SCALARS: dict[str, Callable[[int, Any], bytes]] = {
    "string": string,
    "bool": boolean,
    "int": integer,
    "double": double,
}
"""By form; each writes a whole field."""
