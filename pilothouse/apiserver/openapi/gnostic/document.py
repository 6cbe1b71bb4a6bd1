"""Encodes a v2 document as gnostic's message; keys for which that has no field are left out.

Free values and vendor extensions travel as YAML text, and JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from pilothouse.apiserver.openapi.gnostic.fields import FIELDS, MessageField
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.wire import BYTES, FIXED64, VARINT, delimited, tag, varint

_YAML = 2
"""The field of Any that has its text."""
_NON_BODY = {"query": (3, "QueryParameter"), "path": (4, "PathParameter")}
"""The field of NonBodyParameter for each location, and the message in it."""


def encode_document(document: Json) -> bytes:
    return _message("Document", document)


def _message(name: str, value: Json) -> bytes:
    return b"".join(_fields(FIELDS[name], value))


def _fields(fields: dict[str, MessageField], value: Json) -> Iterator[bytes]:
    for key, item in value.items():
        if key in fields:
            yield _field(fields[key], item)
        elif key.startswith("x-"):
            yield nested(fields["x"].number, named(key, any_value(item)))


def _field(field: MessageField, value: Any) -> bytes:
    if field.mapped:
        return nested(field.number, _entries(1, field.form, value))
    if field.repeated:
        return b"".join(_single(field, item) for item in value)
    return _single(field, value)


def _single(field: MessageField, value: Any) -> bytes:
    scalar = SCALARS.get(field.form)
    return scalar(field.number, value) if scalar else nested(field.number, _form(field.form, value))


def _entries(number: int, form: str, value: Json) -> bytes:
    """A map, as gnostic has it: a repeated field of names with values."""
    return b"".join(nested(number, named(name, _form(form, item))) for name, item in value.items())


def _form(form: str, value: Any) -> bytes:
    """The content of a message; those with an alternative in them say which one it is by a field."""
    match form:
        case "any":
            return any_value(value)
        case "Paths":
            return _entries(2, "PathItem", value)
        case "Responses":
            return _entries(1, "ResponseOrReference", value)
        case "ResponseOrReference":
            return _or_reference("Response", value)
        case "ParameterOrReference":
            return _or_reference("Parameter", value)
        case "Parameter":
            return _parameter(value)
        case "ResponseSchema" | "Items":
            return nested(1, _message("Schema", value))
        case "SchemaOrBool":
            return SCALARS["bool"](2, value) if isinstance(value, bool) else nested(1, _message("Schema", value))
        case "Type":
            return SCALARS["string"](1, value)
        case "SecurityDefinition":
            return nested(2, _message("ApiKey", value))
        case "SecurityRequirement":
            return b"".join(nested(1, named(name, _strings(scopes))) for name, scopes in value.items())
        case _:
            return _message(form, value)


def _or_reference(form: str, value: Json) -> bytes:
    return nested(2, _message("Reference", value)) if "$ref" in value else nested(1, _form(form, value))


def _parameter(value: Json) -> bytes:
    location = value["in"]
    if location == "body":
        return nested(1, _message("BodyParameter", value))
    number, message = _NON_BODY[location]
    return nested(2, nested(number, _message(message, value)))


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
