"""Whole bodies: what becomes of them, and the words in which they are refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.machinery.codec.body_errors import BodyError, strict_refusal
from pilothouse.machinery.codec.decoder import Codec, DecodedBody, decode_body, decode_object
from pilothouse.machinery.codec.scheme import AGGREGATOR, EXTENSIONS, KUBE, OPTIONS, Scheme
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupVersionKind

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
DELETE_OPTIONS = GroupVersionKind("meta.k8s.io", "v1", "DeleteOptions")


def decode(
    body: Any, default: GroupVersionKind = CONFIG_MAP, codec: Codec = Codec.JSON, scheme: Scheme = KUBE
) -> DecodedBody:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return decode_object(data, codec=codec, default=default, scheme=scheme)


def refusal(body: Any, default: GroupVersionKind = CONFIG_MAP, codec: Codec = Codec.JSON) -> str:
    with pytest.raises(BadRequest) as caught:
        decode(body, default, codec)
    return str(caught.value)


def strict(body: Any, default: GroupVersionKind = CONFIG_MAP, codec: Codec = Codec.JSON) -> str:
    decoded = decode(body, default, codec)
    return str(strict_refusal(decoded.gvk, default, decoded.strict_errors))


def test_missing_kind_defaults_to_the_resource_kind() -> None:
    body = decode({"metadata": {"name": "a"}})
    assert body.gvk == CONFIG_MAP
    assert body.obj == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}


@pytest.mark.parametrize("body", [b"null", b" {} \n"])
def test_an_empty_object_and_null_are_an_empty_object(body: bytes) -> None:
    assert decode(body).obj == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}


def test_type_fields_are_case_insensitive() -> None:
    body = decode({"Kind": "ConfigMap", "APIVERSION": "v1"})
    assert body.gvk == CONFIG_MAP
    assert body.strict_errors == ('unknown field "Kind"', 'unknown field "APIVERSION"')


def test_another_version_of_the_kind_is_decoded_as_that_version() -> None:
    body = decode({"apiVersion": "apps/v1beta1", "kind": "Deployment", "spec": {"rollbackTo": {}}}, DEPLOYMENT)
    assert body.gvk == GroupVersionKind("apps", "v1beta1", "Deployment")
    assert body.obj["spec"]["rollbackTo"] == {}


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_TYPE = "couldn't get version/kind; json parse error: "
TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", NO_TYPE + "unexpected end of JSON input (<empty>)"),
        (b"[]", f"{NO_TYPE}json: cannot unmarshal array into Go value of type {TYPE_META} (5b5d)"),
        (b"{no", NO_TYPE + "invalid character 'n' looking for beginning of object key string ({no)"),
        (
            b'{"kind":5}',
            NO_TYPE + 'json: cannot unmarshal number into Go struct field .kind of type string ({"kind":5})',
        ),
        (b'{"apiVersion":"a/b/c"}', 'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})'),
        (
            b'{"apiVersion":"/b/","kind":"Crate"}',
            'unexpected GroupVersion string: /b/ ({"apiVersion":"/b/","kind":"Cr ...)',
        ),
        (b"x" * 31, f"{NO_TYPE}invalid character 'x' looking for beginning of value ({'78' * 30} ...)"),
    ],
)
def test_a_body_whose_type_cannot_be_read_is_unrecognized(body: bytes, message: str) -> None:
    assert refusal(body) == UNRECOGNIZED + message


def test_unknown_kind_is_not_registered() -> None:
    assert refusal({"apiVersion": "v1", "kind": "Crate"}) == (
        'Crate in version "v1" cannot be handled as a ConfigMap: '
        'no kind "Crate" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )


def test_another_kind_cannot_be_converted() -> None:
    assert refusal({"apiVersion": "v1", "kind": "Secret"}) == (
        'Secret in version "v1" cannot be handled as a ConfigMap: '
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )


def test_a_group_without_a_version_is_a_missing_version() -> None:
    body = b'{"apiVersion":"batch/","kind":"Job"}'
    assert refusal(body, DEPLOYMENT) == (
        'Job in version "" cannot be handled as a Deployment: '
        'Object \'apiVersion\' is missing in \'{"apiVersion":"batch/","kind":"Job"}\''
    )


def test_a_wrong_type_is_told_with_the_bodys_kind_and_the_numbers_spelling() -> None:
    body = b'{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1.0}}'
    assert refusal(body, DEPLOYMENT) == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal number 1.0 '
        "into Go struct field DeploymentSpec.spec.replicas of type int32"
    )


def test_strict_errors_come_in_the_order_of_the_text() -> None:
    body = b'{"metadata":{"name":"a","colour":"red","name":"b"},"data":{"k":"1","k":"2"},"extra":1}'
    assert strict(body) == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "metadata.colour", duplicate field "metadata.name", '
        'duplicate field "data.k", unknown field "extra"'
    )
    assert decode(body).obj["data"] == {"k": "2"}


def test_without_strict_unknown_fields_are_dropped_silently() -> None:
    data = b'{"metadata":{"name":"a","name":"b"},"extra":1}'
    body = decode_object(data, codec=Codec.JSON, default=CONFIG_MAP, scheme=KUBE, strict=False)
    assert body.strict_errors == ()
    assert body.obj["metadata"] == {"name": "b"}
    assert "extra" not in body.obj


def test_yaml_reports_duplicates_before_sorted_unknown_fields() -> None:
    body = b'kind: ConfigMap\nzoo: 1\ndata:\n  k: "1"\n  k: "2"\nant: x\n'
    assert strict(body, codec=Codec.YAML) == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n'
        '  line 5: key "k" already set in map, unknown field "ant", unknown field "zoo"'
    )


def test_bad_yaml_is_unrecognized() -> None:
    assert refusal(b"a: [unclosed\nb: c", codec=Codec.YAML) == (
        f"{UNRECOGNIZED}yaml: line 1: did not find expected ',' or ']' (613a205b756e636c6f7365640a623a2063)"
    )


def test_yaml_has_booleans_where_strings_are_wanted() -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: n\n"
    assert refusal(body, codec=Codec.YAML) == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool '
        "into Go struct field ObjectMeta.metadata.name of type string"
    )


def test_deletions_decode_options_of_any_version_and_tell_the_bare_message() -> None:
    def options(data: bytes) -> DecodedBody:
        return decode_body(data, codec=Codec.JSON, default=DELETE_OPTIONS, scheme=OPTIONS)

    assert options(b'{"preconditions":{"uid":"x"}}').obj["preconditions"] == {"uid": "x"}
    assert (
        options(b'{"apiVersion":"apps/v1","kind":"DeleteOptions","gracePeriodSeconds":0}').obj["gracePeriodSeconds"]
        == 0
    )
    with pytest.raises(BodyError) as caught:
        options(b'{"apiVersion":"v1","kind":"ConfigMap"}')
    assert str(caught.value) == (
        'no kind "ConfigMap" is registered for version "v1" in scheme '
        '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
    )


def test_each_scheme_has_its_own_groups() -> None:
    crd = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    service = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
    knows = {
        scheme: [gvk for gvk in (CONFIG_MAP, crd, service) if scheme.type_of(gvk)]
        for scheme in (KUBE, EXTENSIONS, AGGREGATOR, OPTIONS)
    }
    assert knows == {KUBE: [CONFIG_MAP], EXTENSIONS: [crd], AGGREGATOR: [service], OPTIONS: []}
