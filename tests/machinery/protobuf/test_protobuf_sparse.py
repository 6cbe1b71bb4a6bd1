"""Objects with little in them, written out by hand from gogo's rules: values are always written, pointers are not."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.protobuf.codec import decode, decode_raw, encode, encode_raw

# name, then generateName, namespace, selfLink, uid, resourceVersion, generation and creationTimestamp, all zero
NAMED_A = "0a0161 1200 1a00 2200 2a00 3200 3800 4200"
META = f"0a11 {NAMED_A}"
CONTAINER = "0a0163 120169 2a00 4200 6a00 7200 800100 880100 900100 a20100"
POD_SPEC = f"121a {CONTAINER} 1a00 3200 4200 4a00 5200 5800 6000 6800 820100 8a0100 9a0100 c20100"  # 28 + 16 + 12 bytes
POD_STATUS = "0a00 1a00 2200 2a00 3200 4a00 5a00 7200 880100"

MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    ("ConfigMap", {"metadata": {"name": "a"}}, META),
    ("ConfigMap", {}, "0a10 0a00 1200 1a00 2200 2a00 3200 3800 4200"),
    ("ConfigMap", {"metadata": {"name": "a"}, "data": {"k": ""}, "immutable": False}, f"{META} 1205 0a016b 1200 2000"),
    ("Secret", {"metadata": {"name": "a"}, "data": {"k": "dg=="}}, f"{META} 1206 0a016b 120176 1a00"),
    ("Namespace", {"metadata": {"name": "a"}}, f"{META} 1200 1a02 0a00"),
    (
        "Pod",
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        f"{META} 1238 {POD_SPEC} 1a13 {POD_STATUS}",
    ),
]


def core(kind: str) -> GroupVersionKind:
    return GroupVersionKind("", "v1", kind)


@pytest.mark.parametrize(("kind", "obj", "expected"), MESSAGES)
def test_a_sparse_object_is_written_as_upstream_writes_it(kind: str, obj: dict[str, Any], expected: str) -> None:
    assert encode_raw(obj, core(kind)).hex() == expected.replace(" ", "")


def test_null_is_written_as_a_field_that_is_not_there() -> None:
    obj = {"metadata": None, "data": None, "immutable": None}
    assert encode_raw(obj, core("ConfigMap")) == encode_raw({}, core("ConfigMap"))


def test_the_envelope_holds_magic_kind_message_and_empty_content_names() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    type_meta = "0a0f 0a02 7631 1209 436f6e6669674d6170"
    expected = f"6b387300 {type_meta} 1213 {META} 1a00 2200"
    assert encode(obj).hex() == expected.replace(" ", "")


def test_structs_and_unset_required_fields_are_shown_as_go_shows_them() -> None:
    assert decode_raw(b"", core("Pod")) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {},
        "spec": {"containers": None},
        "status": {},
    }
    assert decode_raw(b"", core("ConfigMap")) == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


def test_a_list_without_items_is_an_empty_list() -> None:
    assert decode_raw(b"", core("PodList"))["items"] == []


def test_a_zero_time_is_left_out_of_metadata_and_null_elsewhere() -> None:
    obj = {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]}}
    read = decode_raw(encode_raw(obj, core("Pod")), core("Pod"))
    assert read["metadata"] == {}
    assert read["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    ]


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ({"periodSeconds": 10}, {"periodSeconds": 10}),
        ({"periodSeconds": -1}, {"periodSeconds": -1}),
        ({"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
        ({"httpGet": {"port": "web"}}, {"httpGet": {"port": "web"}}),
        ({"httpGet": {}}, {"httpGet": {"port": 0}}),
    ],
)
def test_a_pointer_keeps_its_zero_and_a_value_does_not(probe: dict[str, Any], expected: dict[str, Any]) -> None:
    obj = {"spec": {"containers": [{"name": "c", "livenessProbe": probe}]}}
    read = decode_raw(encode_raw(obj, core("Pod")), core("Pod"))
    assert read["spec"]["containers"] == [{"name": "c", "resources": {}, "livenessProbe": expected}]


def test_a_quantity_travels_in_its_canonical_form() -> None:
    obj = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m", "memory": 0.5}}}]}}
    read = decode_raw(encode_raw(obj, core("Pod")), core("Pod"))
    assert read["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1", "memory": "500m"}}


def test_an_inlined_struct_has_its_fields_in_the_object_around_it() -> None:
    volume = {"name": "v", "configMap": {"name": "m", "optional": True}}
    obj = {"spec": {"containers": [], "volumes": [volume]}}
    read = decode_raw(encode_raw(obj, core("Pod")), core("Pod"))
    assert read["spec"]["volumes"] == [volume]


def test_decode_is_the_inverse_of_encode_for_sparse_objects() -> None:
    obj = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}, "status": {}}
    assert decode(encode(obj)) == obj
