"""The fields of gnostic's messages that a JSON document can have here, by JSON key.

    key=number         a string
    key=number:form    another form: a scalar, one of the messages here, or a form with rules of its own (forms.py)

"[]" repeats the form, "{}" maps names to it. `x` stands for all vendor extensions.
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

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
            fields[key] = _field(rest)
        else:
            fields = messages[token.removesuffix(":")] = {}
    return messages


def _field(text: str) -> MessageField:
    number, _, form = text.partition(":")
    repeated, mapped = form.startswith("[]"), form.startswith("{}")
    return MessageField(int(number), form.removeprefix("[]").removeprefix("{}") or "string", repeated, mapped)


FIELDS = _parse(_TABLE)
"""By message and JSON key."""
