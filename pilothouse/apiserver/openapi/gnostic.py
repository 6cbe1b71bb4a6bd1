"""Encoder of documents as gnostic's messages, byte for byte as Go encodes them. Keys without a field are dropped.

Fields are in the order of their numbers, without zero values. Arbitrary values and vendor extensions are YAML text. The
tables list the fields of gnostic's messages that a JSON document can have here, by JSON key:

    key=number         a string
    key=number:form    another form: a scalar, one of the messages here, or a form with rules of its own

"[]" repeats the form, "{}" maps names to it. `x` stands for all vendor extensions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from pilothouse.machinery.codec.yaml_v3 import yaml_v3
from pilothouse.machinery.dataclass import dataclass
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
        return b"".join(encoded for _, encoded in sorted(self._fields(self._messages[name], value), key=itemgetter(0)))

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

    def _fields(self, fields: dict[str, MessageField], value: Json) -> Iterator[tuple[int, bytes]]:
        """Yield the numbers of the fields with their bytes, in the order of the document."""
        for key, item in value.items():
            if key in fields:
                yield fields[key].number, self._field(fields[key], item)
            elif key.startswith("x-"):
                number = fields["x"].number
                yield number, nested(number, named(key, any_value(item)))

    def _field(self, field: MessageField, value: Any) -> bytes:
        if field.mapped:
            return nested(field.number, self.entries(1, field.form, value))
        if field.repeated:
            return b"".join(self._single(field, item) for item in value)
        return b"" if not value and field.form in SCALARS else self._single(field, value)

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
            case "Default":  # the message has no field for objects and lists
                if isinstance(value, bool):
                    return SCALARS["bool"](2, value)
                if isinstance(value, str):
                    return string(3, value)
                return double(1, value) if isinstance(value, int | float) else b""
            case _:
                return super().form(form, value)


def _strings(values: list[str]) -> bytes:
    return b"".join(SCALARS["string"](1, value) for value in values)


def nested(number: int, content: bytes) -> bytes:
    return delimited(tag(number, BYTES), content)


def named(name: str, content: bytes) -> bytes:
    """Return the content of a map entry."""
    return string(1, name) + nested(2, content)


def any_value(value: Any) -> bytes:
    """Return the content of an Any."""
    return nested(_YAML, yaml_v3(value).encode())


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


_TABLE = """
Document: swagger=1 info=2:Info host=3 basePath=4 schemes=5:[] consumes=6:[] produces=7:[] paths=8:Paths
    definitions=9:{}Schema parameters=10:{}Parameter security=12:[]SecurityRequirement
    securityDefinitions=13:{}SecurityDefinition x=16
Info: title=1 version=2 description=3 termsOfService=4 x=7
PathItem: $ref=1 get=2:Operation put=3:Operation post=4:Operation delete=5:Operation options=6:Operation
    head=7:Operation patch=8:Operation parameters=9:[]ParameterOrReference x=10
Operation: tags=1:[] summary=2 description=3 operationId=5 produces=6:[] consumes=7:[]
    parameters=8:[]ParameterOrReference responses=9:Responses schemes=10:[] deprecated=11:bool
    security=12:[]SecurityRequirement x=13
Reference: $ref=1 description=2
BodyParameter: description=1 name=2 in=3 required=4:bool schema=5:Schema x=6
QueryParameter: required=1:bool in=2 description=3 name=4 allowEmptyValue=5:bool type=6 format=7 collectionFormat=9
    default=10:any maximum=11:double minimum=13:double maxLength=15:int minLength=16:int pattern=17 uniqueItems=20:bool
    enum=21:[]any x=23
PathParameter: required=1:bool in=2 description=3 name=4 type=5 format=6 collectionFormat=8 default=9:any
    maximum=10:double minimum=12:double maxLength=14:int minLength=15:int pattern=16 uniqueItems=19:bool enum=20:[]any
    x=22
Response: description=1 schema=2:ResponseSchema x=5
Schema: $ref=1 format=2 title=3 description=4 default=5:any multipleOf=6:double maximum=7:double
    exclusiveMaximum=8:bool minimum=9:double exclusiveMinimum=10:bool maxLength=11:int minLength=12:int pattern=13
    maxItems=14:int minItems=15:int uniqueItems=16:bool maxProperties=17:int minProperties=18:int required=19:[]
    enum=20:[]any additionalProperties=21:SchemaOrBool type=22:Type items=23:Items allOf=24:[]Schema
    properties=25:{}Schema discriminator=26 readOnly=27:bool example=30:any x=31
ApiKey: type=1 name=2 in=3 description=4 x=5
"""

_V3_TABLE = """
Document: openapi=1 info=2:Info paths=4:Paths components=5:Components security=6:[]SecurityRequirement x=9
Info: title=1 description=2 termsOfService=3 version=6 x=7
Components: schemas=1:{}SchemaOrReference securitySchemes=7:{}SecuritySchemeOrReference x=10
PathItem: $ref=1 summary=2 description=3 get=4:Operation put=5:Operation post=6:Operation delete=7:Operation
    options=8:Operation head=9:Operation patch=10:Operation trace=11:Operation parameters=13:[]ParameterOrReference x=14
Operation: tags=1:[] summary=2 description=3 operationId=5 parameters=6:[]ParameterOrReference
    requestBody=7:RequestBodyOrReference responses=8:Responses deprecated=10:bool security=11:[]SecurityRequirement x=13
Reference: $ref=1 summary=2 description=3
Parameter: name=1 in=2 description=3 required=4:bool deprecated=5:bool allowEmptyValue=6:bool style=7 explode=8:bool
    allowReserved=9:bool schema=10:SchemaOrReference example=11:any content=13:{}MediaType x=14
RequestBody: description=1 content=2:{}MediaType required=3:bool x=4
MediaType: schema=1:SchemaOrReference example=2:any x=5
Response: description=1 content=3:{}MediaType x=5
Schema: nullable=1:bool readOnly=3:bool writeOnly=4:bool example=7:any deprecated=8:bool title=9 multipleOf=10:double
    maximum=11:double exclusiveMaximum=12:bool minimum=13:double exclusiveMinimum=14:bool maxLength=15:int
    minLength=16:int pattern=17 maxItems=18:int minItems=19:int uniqueItems=20:bool maxProperties=21:int
    minProperties=22:int required=23:[] enum=24:[]any type=25 allOf=26:[]SchemaOrReference oneOf=27:[]SchemaOrReference
    anyOf=28:[]SchemaOrReference not=29:Schema items=30:Items properties=31:{}SchemaOrReference
    additionalProperties=32:SchemaOrBool default=33:Default description=34 format=35 x=36
SecurityScheme: type=1 description=2 name=3 in=4 scheme=5 bearerFormat=6 x=9
"""


@dataclass(frozen=True, slots=True)
class MessageField:
    number: int
    form: str = "string"
    repeated: bool = False
    mapped: bool = False


def _parse(table: str) -> dict[str, dict[str, MessageField]]:
    messages: dict[str, dict[str, MessageField]] = {}
    fields: dict[str, MessageField] = {}
    for token in table.split():
        key, equals, rest = token.partition("=")
        if equals:
            number, _, form = rest.partition(":")
            repeated, mapped = form.startswith("[]"), form.startswith("{}")
            fields[key] = MessageField(
                int(number), form.removeprefix("[]").removeprefix("{}") or "string", repeated, mapped
            )
        else:
            fields = messages[token.removesuffix(":")] = {}
    return messages


FIELDS = _parse(_TABLE)
"""Fields of v2, by message and JSON key."""

V3_FIELDS = _parse(_V3_TABLE)
