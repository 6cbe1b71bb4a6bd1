"""What is written is read back the same, for any object of any built-in kind; noise is refused and nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_objects import KINDS, objects

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.codec import decode, encode, encode_raw
from pilothouse.machinery.protobuf.envelope import envelope
from pilothouse.machinery.protobuf.messages import message_type
from pilothouse.machinery.protobuf.wire import ProtobufError
from pilothouse.machinery.wire_facts import message_of

MODEST = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
GVKS = [
    GroupVersionKind("", "v1", "Pod"),
    GroupVersionKind("", "v1", "Event"),
    GroupVersionKind("", "v1", "APIResourceList"),
    GroupVersionKind("batch", "v1", "Job"),
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice"),
    GroupVersionKind("authentication.k8s.io", "v1", "TokenReview"),
]


@MODEST
@given(st.data())
def test_any_object_of_any_kind_survives_the_round_trip(data: st.DataObject) -> None:
    package, message = data.draw(st.sampled_from(KINDS))
    obj: Any = data.draw(objects(package, message))
    target = message_type(f"{package}.{message}")
    body = target.write(obj)
    read = target.read(body, 0, len(body), None, 0)
    assert read == obj
    assert orjson.dumps(read) == orjson.dumps(obj)


@MODEST
@given(objects("k8s.io.api.core.v1", "Pod"))
def test_an_enveloped_object_survives_the_round_trip(obj: Json) -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", **obj}
    assert decode(encode(pod)) == pod


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(GVKS))
def test_random_bytes_are_read_or_refused(noise: bytes, gvk: GroupVersionKind) -> None:
    attempt(noise, gvk)


@MODEST
@given(st.data())
def test_a_damaged_object_is_read_or_refused(data: st.DataObject) -> None:
    gvk = data.draw(st.sampled_from(GVKS))
    name = message_of(gvk)
    assert name is not None
    body = bytearray(encode_raw(data.draw(objects(name.package, name.message)), gvk))
    for _ in range(data.draw(st.integers(1, 4))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    attempt(bytes(body), gvk)
    attempt(bytes(body[: data.draw(st.integers(0, len(body)))]), gvk)


def attempt(raw: bytes, gvk: GroupVersionKind) -> None:
    """Only a ProtobufError may come out, and what was read can be written."""
    for data in (envelope(gvk, raw), b"k8s\x00" + raw):
        with suppress(ProtobufError):
            encode_raw(decode(data, default=gvk), gvk)
