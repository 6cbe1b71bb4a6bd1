"""The documents in gnostic's messages. The field numbers here are those of openapiv2.proto and openapiv3.proto."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from openapi_groups import config_maps, core, v2_document
from whole_server import whole_server

from pilothouse.apiserver.openapi.gnostic import encode_document, encode_v3_document
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.wire import read_varint

Message: TypeAlias = dict[int, list[bytes | int]]


def decoded(data: bytes) -> Message:
    """The fields of one message by number; what is in them stays as it is."""
    out: Message = {}
    pos = 0
    while pos < len(data):
        key, pos = read_varint(data, pos)
        value: bytes | int
        if key & 7 == 0:
            value, pos = read_varint(data, pos)
        elif key & 7 == 1:
            value, pos = data[pos : pos + 8], pos + 8
        else:
            assert key & 7 == 2
            size, pos = read_varint(data, pos)
            value, pos = data[pos : pos + size], pos + size
        out.setdefault(key >> 3, []).append(value)
    assert pos == len(data)
    return out


def at(data: bytes, *numbers: int) -> bytes:
    """The first value along the numbers."""
    for number in numbers:
        found = decoded(data)[number][0]
        assert isinstance(found, bytes)
        data = found
    return data


def entries(data: bytes, number: int) -> dict[str, bytes]:
    """A map: repeated messages with name=1 and value=2."""
    found = [value for value in decoded(data).get(number, []) if isinstance(value, bytes)]
    return {at(entry, 1).decode(): at(entry, 2) for entry in found}


DOCUMENT = v2_document(core(config_maps()))
ENCODED = encode_document(DOCUMENT)


def schema(written: Json) -> bytes:
    """A definition with that schema, encoded."""
    return entries(at(encode_document({"definitions": {"a": written}}), 9), 1)["a"]


def test_the_smallest_document_is_as_protobuf_writes_it() -> None:
    encoded = encode_document({"swagger": "2.0", "info": {"title": "K", "version": "v1"}})
    assert encoded == b"\x0a\x032.0" + b"\x12\x07" + b"\x0a\x01K" + b"\x12\x02v1"


def test_fields_are_in_the_order_of_their_numbers_and_zero_values_are_left_out() -> None:
    assert schema({"x-a": 1, "description": "d", "format": "", "minimum": 0, "title": "t"}) == (
        b"\x1a\x01t" + b"\x22\x01d" + b"\xfa\x01\x0b" + b"\x0a\x03x-a" + b"\x12\x04" + b"\x12\x021\n"
    )


def test_paths_operations_and_answers_are_where_clients_look_for_them() -> None:
    paths = entries(at(ENCODED, 8), 2)
    assert paths.keys() == DOCUMENT["paths"].keys()
    put = at(paths["/api/v1/namespaces/{namespace}/configmaps/{name}"], 3)
    assert at(put, 5) == b"replaceCoreV1NamespacedConfigMap"
    assert at(entries(at(put, 9), 1)["200"], 1, 2, 1, 1) == b"#/definitions/io.k8s.api.core.v1.ConfigMap"
    assert at(entries(put, 13)["x-kubernetes-action"], 2) == b"put\n"


def test_parameters_are_bodies_references_or_what_their_location_says() -> None:
    put = at(entries(at(ENCODED, 8), 2)["/api/v1/namespaces/{namespace}/configmaps/{name}"], 3)
    parameters = [value for value in decoded(put)[8] if isinstance(value, bytes)]
    assert at(parameters[0], 1, 1, 2) == b"body"
    assert at(parameters[1], 1, 2, 3, 4) == b"dryRun"
    assert at(parameters[2], 2, 1).startswith(b"#/parameters/fieldManager-")
    shared = entries(at(ENCODED, 10), 1)
    [namespace] = [value for name, value in shared.items() if name.startswith("namespace-")]
    assert at(namespace, 2, 4, 4) == b"namespace"
    assert decoded(at(namespace, 2, 4))[1] == [1]


def test_definitions_keep_their_properties_and_extensions() -> None:
    definitions = entries(at(ENCODED, 9), 1)
    assert definitions.keys() == DOCUMENT["definitions"].keys()
    config_map = definitions["io.k8s.api.core.v1.ConfigMap"]
    assert at(config_map, 22, 1) == b"object"
    data = entries(at(config_map, 25), 1)["data"]
    assert at(data, 21, 1, 22, 1) == b"string"
    kinds = entries(config_map, 31)["x-kubernetes-group-version-kind"]
    assert at(kinds, 2) == b'- group: ""\n  kind: ConfigMap\n  version: v1\n'


def test_every_kind_of_value_in_a_schema_has_its_wire_type() -> None:
    encoded = schema({"type": "array", "items": {"$ref": "#/definitions/b"}, "minItems": 300, "uniqueItems": True})
    assert at(encoded, 23, 1, 1) == b"#/definitions/b"
    assert (decoded(encoded)[15], decoded(encoded)[16]) == ([300], [1])
    number = schema({"minimum": 1.5, "enum": ["a", 2], "required": ["x", "y"]})
    assert decoded(number)[9] == [b"\x00\x00\x00\x00\x00\x00\xf8\x3f"]
    assert [at(value, 2) for value in decoded(number)[20] if isinstance(value, bytes)] == [b"a\n", b"2\n"]
    assert decoded(number)[19] == [b"x", b"y"]


def test_additional_properties_are_a_schema_or_a_boolean() -> None:
    assert decoded(at(schema({"additionalProperties": False}), 21)) == {2: [0]}
    assert at(schema({"additionalProperties": {"type": "string"}}), 21, 1, 22, 1) == b"string"


def test_what_version_2_does_not_know_is_left_out() -> None:
    assert schema({"nullable": True, "anyOf": [{"type": "string"}]}) == b""


def test_security_names_the_header_and_requires_it() -> None:
    assert at(entries(at(ENCODED, 13), 1)["BearerToken"], 2, 3) == b"header"
    assert entries(at(ENCODED, 12), 1) == {"BearerToken": b""}


def test_a_v3_document_has_the_field_numbers_of_openapiv3_proto() -> None:
    """Document: openapi=1, paths=4, components=5; Schema: type=25, default=33, description=34; DefaultType string=3"""
    document: Json = {
        "openapi": "3.0.0",
        "paths": {"/a": {"get": {"operationId": "readA", "responses": {"200": {"$ref": "#/r"}}}}},
        "components": {
            "schemas": {"A": {"type": "string", "description": "d", "default": "x", "x-kubernetes-map-type": "atomic"}}
        },
    }
    data = encode_v3_document(document)
    assert at(data, 1) == b"3.0.0"
    path = at(data, 4, 1)
    assert at(path, 1) == b"/a"
    assert at(path, 2, 4, 5) == b"readA"
    assert at(path, 2, 4, 8, 2, 2, 2, 1) == b"#/r"
    schema = at(data, 5, 1, 1, 2, 1)
    assert (at(schema, 25), at(schema, 34), at(schema, 33, 3)) == (b"string", b"d", b"x")
    assert at(schema, 36, 1) == b"x-kubernetes-map-type"


async def test_a_server_answers_v3_in_protobuf(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        plain = await api.request("GET", "/openapi/v3/api/v1")
        for separator in (".", "@"):
            accept = f"application/com.github.proto-openapi.spec.v3{separator}v1.0+protobuf"
            answer = await api.request("GET", "/openapi/v3/api/v1", accept=accept)
            assert (answer.status, answer.headers["etag"]) == (200, plain.headers["etag"])
            assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
            assert at(answer.body, 2, 1) == b"Kubernetes"
