"""Reading what other encoders may write, and refusing what no encoder would."""

from __future__ import annotations

import random

import pytest

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.codec import decode, decode_raw, encode, encode_raw, supports
from pilothouse.machinery.protobuf.wire import ProtobufError, delimited, tag, varint

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
POD = GroupVersionKind("", "v1", "Pod")
JOB = GroupVersionKind("batch", "v1", "Job")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NAME = delimited(b"\x0a", delimited(b"\x0a", b"a"))
READ_NAME = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    "unknown",
    [
        delimited(tag(99, 2), b"whatever"),
        tag(99, 0) + varint(1 << 63),
        tag(99, 1) + bytes(8),
        tag(99, 5) + bytes(4),
        tag(99, 3) + delimited(tag(1, 2), b"x") + tag(98, 3) + tag(98, 4) + tag(99, 4),
        delimited(tag(100_000, 2), b"far"),
    ],
)
def test_unknown_fields_are_skipped(unknown: bytes) -> None:
    assert decode_raw(unknown + NAME + unknown, CONFIG_MAP) == READ_NAME
    assert decode_raw(delimited(b"\x0a", unknown + delimited(b"\x0a", b"a")), CONFIG_MAP) == READ_NAME


def test_fields_may_come_in_any_order() -> None:
    data = [delimited(b"\x12", delimited(b"\x0a", key) + delimited(b"\x12", b"v")) for key in (b"x", b"y")]
    fields = [NAME, *data, b"\x20\x01"]
    dice = random.Random(7)
    for _ in range(10):
        dice.shuffle(fields)
        assert decode_raw(b"".join(fields), CONFIG_MAP) == READ_NAME | {"data": {"x": "v", "y": "v"}, "immutable": True}


def test_the_last_scalar_wins_even_when_it_is_zero() -> None:
    twice = delimited(b"\x0a", delimited(b"\x0a", b"a") + delimited(b"\x0a", b"") + b"\x38\x05\x38\x00")
    assert decode_raw(twice, CONFIG_MAP)["metadata"] == {}


def test_a_message_that_comes_twice_is_merged() -> None:
    spec = delimited(b"\x12", b"") + delimited(b"\x12", delimited(b"\x12", delimited(b"\x0a", b"c")))
    assert decode_raw(spec, POD)["spec"]["containers"] == [{"name": "c", "resources": {}}]
    labels = [delimited(b"\x0a", delimited(b"\x5a", delimited(b"\x0a", key))) for key in (b"x", b"y")]
    assert decode_raw(b"".join(labels), CONFIG_MAP)["metadata"] == {"labels": {"x": "", "y": ""}}


def test_repeated_numbers_may_be_packed() -> None:
    codes = tag(3, 0) + varint(1) + delimited(tag(3, 2), varint(300) + varint(-2))
    rule = delimited(b"\x12", codes)  # onExitCodes of a rule
    policy = delimited(tag(11, 2), delimited(b"\x0a", rule))
    read = decode_raw(delimited(b"\x12", policy), JOB)
    assert read["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [1, 300, -2]


def test_an_int32_keeps_its_lower_half() -> None:
    seconds = delimited(b"\x52", tag(3, 0) + varint((5 << 32) | 0xFFFFFFFF))  # a probe's timeoutSeconds
    container = delimited(b"\x12", seconds)
    read = decode_raw(delimited(b"\x12", container), POD)
    assert read["spec"]["containers"][0]["livenessProbe"] == {"timeoutSeconds": -1}


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert decode_raw(delimited(b"\x0a", delimited(b"\x0a", b"a\xff")), CONFIG_MAP)["metadata"] == {"name": "a\ufffd"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x0a\x05\x0a\x01a", "unexpected EOF"),
        (b"\x0a", "unexpected EOF"),
        (b"\x0a\xff", "unexpected EOF"),
        (b"\x0a\x04\x0a\x09ab", "unexpected EOF"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field 1"),
        (b"\x0a\x02\x3a\x00", "proto: wrong wireType = 2 for field 7"),
        (b"\x00\x00", "proto: illegal tag 0 (wire type 0)"),
        (b"\xf4\x06", "proto: illegal wireType 4"),
        (b"\xf6\x06", "proto: illegal wireType 6"),
        (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
    ],
)
def test_a_corrupt_message_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(ProtobufError, match=f"^{message.replace('(', '.').replace(')', '.')}$"):
        decode_raw(raw, CONFIG_MAP)


def test_a_value_that_its_type_cannot_hold_is_refused() -> None:
    bad_quantity = delimited(b"\x0a", delimited(b"\x0a", b"cpu") + delimited(b"\x12", delimited(b"\x0a", b"lots")))
    container = delimited(b"\x12", delimited(b"\x12", delimited(b"\x42", bad_quantity)))
    with pytest.raises(ProtobufError, match="quantities must match"):
        decode_raw(container, POD)
    far_future = delimited(b"\x0a", delimited(b"\x42", b"\x08" + varint(1 << 62)))
    with pytest.raises(ProtobufError):
        decode_raw(far_future, CONFIG_MAP)
    no_json = delimited(b"\x0a", delimited(tag(17, 2), delimited(b"\x3a", delimited(b"\x0a", b"{"))))
    with pytest.raises(ProtobufError):
        decode_raw(no_json, CONFIG_MAP)


def test_nesting_is_bounded_when_reading_and_when_writing() -> None:
    assert nested_depth(decode(encode(crd(40)))) == 40
    schema = b""
    for _ in range(5000):
        schema = delimited(tag(28, 2), schema)  # not: {not: …}
    version = delimited(tag(7, 2), delimited(tag(4, 2), delimited(b"\x0a", schema)))
    with pytest.raises(ProtobufError, match="nested too deeply"):
        decode_raw(delimited(b"\x12", version), CRD)
    groups = tag(99, 3) * 5000
    with pytest.raises(ProtobufError, match="nested too deeply"):
        decode_raw(groups, CONFIG_MAP)
    with pytest.raises(ProtobufError):
        encode(crd(5000))


def crd(depth: int) -> Json:
    schema: Json = {}
    for _ in range(depth):
        schema = {"properties": {"p": schema}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    return {"apiVersion": CRD.api_version, "kind": CRD.kind, "spec": {"versions": versions}}


def nested_depth(obj: Json) -> int:
    schema, depth = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"], 0
    while "properties" in schema:
        schema, depth = schema["properties"]["p"], depth + 1
    return depth


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty data"),
        (b"{}", r"provided data does not appear to be a protobuf message, expected prefix \[107 56 115 0\]"),
        (b"k8s\x00", "empty body"),
        (b"k8s\x00\x12\x00", r"Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"\"}'"),
        (
            b"k8s\x00\x0a\x03\x12\x01X",
            r"Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"X\"}'",
        ),
        (b"k8s\x00\x0a\x07\x0a\x02v1\x12\x01X", 'no kind "X" is registered for version "v1"'),
        (b"k8s\x00\x0a\x09\x0a\x05a/b/c\x12\x00", "unexpected GroupVersion string: a/b/c"),
        (b"k8s\x00\x0a\x7f", "unexpected EOF"),
    ],
)
def test_a_corrupt_envelope_is_refused_in_upstreams_words(data: bytes, message: str) -> None:
    with pytest.raises(ProtobufError, match=f"^{message}$"):
        decode(data)


def test_an_envelope_without_a_kind_takes_the_default() -> None:
    assert decode(b"k8s\x00" + delimited(b"\x12", NAME), default=CONFIG_MAP) == READ_NAME
    only_kind = b"k8s\x00" + delimited(b"\x0a", delimited(b"\x12", b"ConfigMap")) + delimited(b"\x12", NAME)
    assert decode(only_kind, default=POD) == READ_NAME


def test_an_object_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(ProtobufError):
        encode({"metadata": {}})
    wrongs: list[Json] = [
        {"data": {"a": 1}},
        {"binaryData": {"a": "%"}},
        {"metadata": {"generation": "x"}},
        {"metadata": []},
    ]
    for wrong in wrongs:
        with pytest.raises(ProtobufError, match="ConfigMap cannot be written as protobuf"):
            encode_raw(wrong, CONFIG_MAP)
    with pytest.raises(ProtobufError, match='no kind "Table" is registered for version "meta'):
        encode({"apiVersion": "meta.k8s.io/v1", "kind": "Table"})


def test_what_upstream_cannot_write_as_protobuf_is_not_supported() -> None:
    assert supports(POD)
    assert supports(GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadataList"))
    assert not supports(GroupVersionKind("meta.k8s.io", "v1", "Table"))
    assert not supports(GroupVersionKind("example.com", "v1", "Widget"))
