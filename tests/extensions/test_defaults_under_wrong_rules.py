"""Defaults are held against the rules of their schema, also against those that do not compile."""

from __future__ import annotations

import pytest
from custom_resources import DEFINITIONS, definition, version
from whole_server import whole_server

from pilothouse.client import Json

AT = "spec.validation.openAPIV3Schema.properties[spec]"
NO_OVERLOAD = (
    "compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(bool, int)'\n"
    " | self == 1\n | .....^"
)
NO_TYPE = "failed to convert to declType for CEL validation rules"


def rules(*texts: str, **said: str) -> list[Json]:
    return [{"rule": text, **said} for text in texts]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            {"type": "boolean", "default": False, "x-kubernetes-validations": rules("self == 1")},
            f'Invalid value: "boolean": rule compile error: {NO_OVERLOAD}',
        ),
        (
            {"type": "integer", "default": 1, "x-kubernetes-validations": rules("self")},
            'Invalid value: "integer": rule compile error: cel expression must evaluate to a bool',
        ),
        (
            {
                "x-kubernetes-preserve-unknown-fields": True,
                "default": 1,
                "x-kubernetes-validations": rules("self.a == 1"),
            },
            f'Invalid value: "": rule compiler initialization error: {NO_TYPE}',
        ),
        (
            {
                "x-kubernetes-int-or-string": True,
                "default": "50%",
                "x-kubernetes-validations": rules("type(self) == int", messageExpression="self"),
            },
            'Invalid value: "50%": failed rule: type(self) == int',
        ),
    ],
)
async def test_a_default_is_refused_for_each_rule_that_does_not_compile(schema: Json, why: str) -> None:
    shown = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}}}}
    async with whole_server() as api:
        refused = await api.request("POST", DEFINITIONS, definition(version(schema=shown)))
    causes = [(cause["field"], cause["message"]) for cause in refused.json["details"]["causes"]]
    assert (f"{AT}.properties[a].default", why) in causes


async def test_a_rule_about_anything_has_no_type() -> None:
    schema = {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": rules("true")}
    shown = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}}}}
    async with whole_server() as api:
        refused = await api.request("POST", DEFINITIONS, definition(version(schema=shown)))
    assert refused.json["details"]["causes"][0]["message"] == (
        "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: "
        "unable to convert structural schema to CEL declarations"
    )
