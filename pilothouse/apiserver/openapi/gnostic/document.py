"""Encoder of documents as gnostic's messages. Keys without a field are dropped.

Arbitrary values and vendor extensions are encoded as YAML text; JSON is YAML.
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
"""The field of Any with its text."""
_NON_BODY = {"query": (3, "QueryParameter"), "path": (4, "PathParameter")}
"""location -> (field of NonBodyParameter, its message)"""


def encode_document(document: Json) -> bytes:
    """Return the message of a v2 document."""
    return V2Writer(FIELDS).message("Document", document)


def encode_v3_document(document: Json) -> bytes:
    return V3Writer(V3_FIELDS).message("Document", document)


class GnosticWriter:
    """Encodes messages by a table. `form` encodes the messages with rules of their own."""

    def __init__(self, messages: dict[str, dict[str, MessageField]]) -> None:
        self._messages = messages

    def message(self, name: str, value: Json) -> bytes:
        return b"".join(self._fields(self._messages[name], value))

    def form(self, form: str, value: Any) -> bytes:
        """Return the content of a message. Messages with alternatives select one by a field."""
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
        """Return a map as gnostic encodes it: a repeated field of named values."""
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
    """Return a marker that there is a default: the message has no field for objects and lists."""
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
    """Return the content of a map entry."""
    return string(1, name) + nested(2, content)


def any_value(value: Any) -> bytes:
    """Return the content of an Any."""
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
"""form -> encoder of a whole field"""
