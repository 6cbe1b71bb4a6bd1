"""Admission expressions against the types of OpenAPI schemas."""

from __future__ import annotations

import pytest

from pilothouse.machinery.cel.admission import CompilationFailed, Declarations
from pilothouse.machinery.cel.openapi_types import OpenAPITypes
from pilothouse.machinery.cel.type_checking import KnownTypes, TypeCheckingCompiler
from pilothouse.machinery.objects import Json

SCHEMAS: dict[str, Json] = {
    "Meta": {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"$ref": "#/x/Labels"}}},
    "Labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "Tree": {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/x/Tree"}}},
    },
    "Thing": {
        "type": "object",
        "properties": {
            "metadata": {"allOf": [{"$ref": "#/x/Meta"}], "default": {}},
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
                    "since": {"type": "string", "format": "date-time"},
                    "open": {"oneOf": [{"type": "string"}, {"type": "number"}]},
                    "tree": {"$ref": "#/x/Tree"},
                },
            },
        },
    },
}
KNOWN = KnownTypes(OpenAPITypes(SCHEMAS).of(SCHEMAS["Thing"]), OpenAPITypes({}).of({"type": "object"}))


def check(expression: str) -> None:
    compiler = TypeCheckingCompiler(KNOWN)
    compiler.declare_variable("spec", "object.spec", Declarations(params=True))
    compiler.compile(expression, Declarations(params=True))


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.size > 1 && oldObject.spec.size < object.spec.size",
        "object.kind == 'Thing' && object.metadata.labels['a'] == 'b'",
        "object.spec.port == 1 || object.spec.port == '1'",
        "object.spec.since < timestamp('2020-01-01T00:00:00Z')",
        "object.spec.tree.children.all(c, c.children[0].whatever == 1)",
        "variables.spec.size == 1 && params.metadata.name == 'x' && request.name == 'y'",
        "authorizer.group('').resource('pods').check('get').allowed() && namespaceObject.metadata.name == 'x'",
    ],
)
def test_an_expression_that_fits_the_types_passes(expression: str) -> None:
    check(expression)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("object.spec.replicas > 1", "undefined field 'replicas'"),
        ("object.spec.size > 'a'", "found no matching overload for '_>_' applied to '(int, string)'"),
        ("object.specs.size > 1", "undefined field 'specs'"),
        ("object.spec.open == 'x'", "undefined field 'open'"),
        ("params.data == 1", "undefined field 'data'"),
    ],
)
def test_an_expression_that_does_not_is_told_once_where(expression: str, complaint: str) -> None:
    with pytest.raises(CompilationFailed) as failed:
        check(expression)
    [line, source, mark] = str(failed.value).split("\n")
    assert line.startswith("ERROR: <input>:1:")
    assert line.endswith(complaint)
    assert source == f" | {expression}"
    assert mark.startswith(" | ..")
