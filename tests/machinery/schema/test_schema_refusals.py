"""What the decoder says about values that do not fit, and about fields that a type does not have."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.codec.json import parse_document
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import DecodeError, ObjectType


def kind(api_version: str, name: str) -> ObjectType:
    found = types.of(GroupVersion.parse(api_version).kind(name))
    assert found is not None
    return found


def refusal(api_version: str, name: str, raw: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        kind(api_version, name).decode(raw)
    return str(caught.value)


def pod(**spec: Any) -> Any:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("raw", "value", "field", "go_type"),
    [
        (pod(containers={"a": 1}), "object", "PodSpec.spec.containers", "[]v1.Container"),
        (pod(containers=["x"]), "string", "PodSpec.spec.containers", "v1.Container"),
        (pod(containers=[{"args": [1]}]), "number", "Container.spec.containers.args", "string"),
        (pod(containers=[{"args": "x"}]), "string", "Container.spec.containers.args", "[]string"),
        (pod(dnsPolicy=5), "number", "PodSpec.spec.dnsPolicy", "v1.DNSPolicy"),
        (pod(containers=[{"tty": "yes"}]), "string", "Container.spec.containers.tty", "bool"),
        (pod(overhead=[]), "array", "PodSpec.spec.overhead", "v1.ResourceList"),
        (pod(volumes=[{"nfs": True}]), "bool", "Volume.spec.volumes.VolumeSource.nfs", "v1.NFSVolumeSource"),
        (pod(nodeSelector={"a": {}}), "object", "PodSpec.spec.nodeSelector", "string"),
        (pod(priority=1.5), "number 1.5", "PodSpec.spec.priority", "int32"),
        (pod(priority=1 << 31), "number 2147483648", "PodSpec.spec.priority", "int32"),
        ({"metadata": {"generation": 1 << 63}}, f"number {1 << 63}", "ObjectMeta.metadata.generation", "int64"),
        ({"metadata": []}, "array", "Pod.metadata", "v1.ObjectMeta"),
    ],
)
def test_a_wrong_type_is_named_with_gos_struct_field_and_type(raw: Any, value: str, field: str, go_type: str) -> None:
    expected = f"json: cannot unmarshal {value} into Go struct field {field} of type {go_type}"
    assert refusal("v1", "Pod", raw) == expected


def test_a_body_that_is_no_object_has_no_struct_field() -> None:
    assert refusal("v1", "Pod", []) == "json: cannot unmarshal array into Go value of type v1.Pod"


def test_the_first_wrong_type_in_the_text_is_reported() -> None:
    raw = {"spec": {"replicas": "x"}, "metadata": {"name": 1}}
    assert "DeploymentSpec.spec.replicas" in refusal("apps/v1", "Deployment", raw)


def test_a_type_that_decodes_itself_is_reported_before_an_earlier_wrong_type() -> None:
    raw = {"metadata": {"name": 1, "creationTimestamp": "now"}}
    expected = 'parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"'
    assert refusal("v1", "Pod", raw) == expected


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"metadata": {"creationTimestamp": 5}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            pod(containers=[{"livenessProbe": {"httpGet": {"port": True}}}]),
            "json: cannot unmarshal bool into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
        (
            pod(containers=[{"resources": {"requests": {"cpu": "1 1"}}}]),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_types_that_decode_themselves_have_their_own_words(raw: Any, message: str) -> None:
    assert refusal("v1", "Pod", raw) == message


@pytest.mark.parametrize(
    ("text", "byte"),
    [("not base64!", 3), ("a", 0), ("aGk", 0), ("aGkh=", 4), ("aG=k", 2), ("aG=", 3), ("aGk=x", 4), ("aGk=\n=", 5)],
)
def test_bad_base64_is_located_as_go_does(text: str, byte: int) -> None:
    assert refusal("v1", "Secret", {"data": {"k": text}}) == f"illegal base64 data at input byte {byte}"


@pytest.mark.parametrize(("item", "word"), [("1.5", "number 1.5"), ("1.0", "number 1.0"), ("256", "number 256")])
def test_a_list_of_numbers_that_are_no_octets_is_no_bytes(item: str, word: str) -> None:
    raw = parse_document(f'{{"data": {{"a": [1, {item}]}}}}'.encode())
    wanted = f"json: cannot unmarshal {word} into Go struct field Secret.data of type uint8"
    assert refusal("v1", "Secret", raw) == wanted


def test_a_boolean_is_no_octet() -> None:
    wanted = "json: cannot unmarshal bool into Go struct field ConfigMap.binaryData of type uint8"
    assert refusal("v1", "ConfigMap", {"binaryData": {"k": [True]}}) == wanted


def test_a_number_is_quoted_as_it_was_written() -> None:
    document = parse_document(b'{"spec":{"replicas":1.50e1}}')
    with pytest.raises(DecodeError, match=r"number 1\.50e1 into Go struct field DeploymentSpec\.spec\.replicas"):
        kind("apps/v1", "Deployment").decode_document(document)


def test_schema_unions_put_the_outer_path_before_the_inner() -> None:
    def crd(schema: Any) -> Any:
        return {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}

    field = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type"
    assert refusal("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd({"items": {"type": 1}})) == (
        f"json: cannot unmarshal number into Go struct field {field} of type string"
    )
    raw = crd({"additionalProperties": "x"})
    assert refusal("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw) == "boolean or JSON schema expected"


def test_unknown_fields_are_dropped_and_reported_in_the_order_of_the_text() -> None:
    raw = {
        "spec": {"replica": 3, "template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "imagePolicy": {}}]}}},
        "Metadata": {},
        "extra": None,
    }
    found = kind("apps/v1", "Deployment").decode(raw)
    assert found.strict_errors == (
        'unknown field "spec.replica"',
        'unknown field "spec.template.spec.containers[1].imagePolicy"',
        'unknown field "Metadata"',
        'unknown field "extra"',
    )
    assert found.obj["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "resources": {}},
        {"name": "b", "resources": {}},
    ]


def test_duplicate_and_unknown_fields_are_reported_together_in_the_order_of_the_text() -> None:
    document = parse_document(b'{"x":{"y":1,"y":2},"metadata":{"name":"a","name":"b"},"z":1,"data":{"k":"1","k":"2"}}')
    assert kind("v1", "ConfigMap").decode_document(document).strict_errors == (
        'unknown field "x"',
        'duplicate field "metadata.name"',
        'unknown field "z"',
        'duplicate field "data.k"',
    )


def test_at_most_a_hundred_strict_errors_are_reported() -> None:
    raw = {f"field{at}": 1 for at in range(150)}
    assert len(kind("v1", "ConfigMap").decode(raw).strict_errors) == 100


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"spec": {"replicas": "three"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"a": True}}}, "unrecognized type: string"),
        ({"metadata": {"labels": []}}, "cannot restore map from slice"),
        ({"metadata": "x"}, "cannot restore struct from: string"),
        ({"spec": {"template": {"spec": {"containers": {}}}}}, "cannot restore slice from map"),
        ({"metadata": {"creationTimestamp": 1}}, "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_converter_messages_differ_from_decoder_messages(raw: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        kind("apps/v1", "Deployment").convert(raw)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("item", "message"),
    [(1.5, "cannot convert float64 to uint8"), (True, "unrecognized type: uint8"), ("x", "unrecognized type: uint8")],
)
def test_the_converter_takes_whole_numbers_for_octets(item: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        kind("v1", "Secret").convert({"data": {"a": [item]}})
    assert str(caught.value) == message
    assert kind("v1", "Secret").convert({"data": {"a": [257, 2.0, None]}}).obj["data"] == {"a": "AQIA"}


def test_the_converter_reports_unknown_fields_in_alphabetical_order() -> None:
    found = kind("v1", "ConfigMap").convert({"z": 1, "metadata": {"shape": 1, "name": "a"}, "b": 1})
    assert found.strict_errors == ('unknown field "b"', 'unknown field "metadata.shape"', 'unknown field "z"')
    assert found.obj == {"metadata": {"name": "a"}}
