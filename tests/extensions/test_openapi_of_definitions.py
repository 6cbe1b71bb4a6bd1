"""OpenAPI of custom resources, byte for byte as Go encodes it."""

from __future__ import annotations

from custom_resources import definition, eventually, install, version
from whole_server import whole_server

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"maximum": 9223372036854775807, "minimum": 1.0, "type": "integer", "default": 3},
                "ratio": {"default": 2.0, "type": "number", "multipleOf": 0.5},
            },
            "x-kubernetes-validations": [{"message": "too small", "fieldPath": ".size", "rule": "self.size > 1"}],
        }
    },
}


async def test_a_schema_has_the_order_and_the_numbers_of_go() -> None:
    async with whole_server() as server:
        crd = definition(version(schema=SCHEMA))
        await install(server, crd)
        answer = await eventually(server, 200, "GET", f"/openapi/v3/apis/{crd['spec']['group']}/v1")
    text = answer.body.decode()
    assert '"size":{"type":"integer","default":3,"maximum":9223372036854776000,"minimum":1}' in text
    assert '"ratio":{"type":"number","default":2,"multipleOf":0.5}' in text
    assert '[{"rule":"self.size > 1","message":"too small","fieldPath":".size"}]' in text.replace("\\u003e", ">")
