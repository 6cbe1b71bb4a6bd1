"""What Go leaves out of an object when it prints or stores it."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.object_type import ObjectType
from pilothouse.machinery.validation.immutable import semantically_equal

CLUSTER_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def kind(api_version: str, name: str) -> ObjectType:
    found = types.of(GroupVersion.parse(api_version).kind(name))
    assert found is not None
    return found


def test_empty_lists_maps_and_bytes_with_omitempty_are_not_printed() -> None:
    config_map = kind("v1", "ConfigMap")
    obj = config_map.decode({"metadata": {"name": "a", "labels": {}, "finalizers": []}, "data": {}}).obj
    assert config_map.printed(obj) == config_map.stored(obj) == {"metadata": {"name": "a"}}
    hooks = kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    obj = hooks.decode({"webhooks": [{"name": "a", "clientConfig": {"caBundle": "", "url": "u"}, "rules": []}]}).obj
    assert hooks.printed(obj)["webhooks"][0]["clientConfig"] == {"url": "u"}


def test_empty_bytes_are_stored_in_protobuf() -> None:
    hooks = kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    obj = hooks.decode({"webhooks": [{"name": "a", "clientConfig": {"caBundle": "", "url": "u"}}]}).obj
    assert hooks.stored(obj)["webhooks"][0]["clientConfig"] == {"caBundle": "", "url": "u"}
    service = kind("apiregistration.k8s.io/v1", "APIService")
    assert "caBundle" not in service.stored(service.decode({"spec": {"caBundle": ""}}).obj)["spec"]


def test_printing_leaves_the_object_alone() -> None:
    pod = kind("v1", "Pod")
    obj = pod.decode({"metadata": {"labels": {}}, "spec": {"containers": [{"name": "a", "args": []}]}}).obj
    printed = pod.printed(obj)
    assert obj["spec"]["containers"][0]["args"] == []
    assert obj["metadata"] == {"labels": {}}
    assert printed["spec"]["containers"][0] == {"name": "a", "resources": {}}
    assert printed["metadata"] == {}


def test_object_without_omissions_is_returned_itself() -> None:
    pod = kind("v1", "Pod")
    obj = pod.decode({"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "a"}]}}).obj
    assert pod.printed(obj) is obj
    assert pod.stored(obj) is obj


@pytest.mark.parametrize("raw", [{}, {"rules": None}, {"rules": []}])
def test_a_list_without_omitempty_comes_back_from_protobuf_as_null(raw: Json) -> None:
    role = kind(*CLUSTER_ROLE)
    assert role.stored(role.decode(raw).obj)["rules"] is None


def test_a_list_without_omitempty_is_printed_as_it_is() -> None:
    role = kind(*CLUSTER_ROLE)
    assert role.printed(role.decode({"rules": []}).obj)["rules"] == []


def test_an_empty_list_of_a_kind_stored_as_json_stays_one() -> None:
    definition = kind(*DEFINITION)
    status = definition.stored(definition.decode({"status": {"conditions": []}}).obj)["status"]
    assert status["conditions"] == []
    assert status["storedVersions"] is None


def test_empty_parts_of_nested_schemas_are_omitted() -> None:
    inner: Json = {"type": "object", "required": [], "dependencies": {}}
    schema = {"type": "array", "items": inner, "properties": {"a": dict(inner)}, "allOf": [dict(inner)]}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    definition = kind(*DEFINITION)
    printed = definition.printed(definition.decode({"spec": {"versions": [version]}}).obj)
    shown = printed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert shown["items"] == shown["properties"]["a"] == shown["allOf"][0] == {"type": "object"}


def spec_of(**fields: Any) -> Json:
    spec: Json = kind("v1", "Pod").decode({"spec": {"containers": [], **fields}}).obj["spec"]
    return spec


def test_empty_map_equals_missing_map_but_empty_struct_differs() -> None:
    assert semantically_equal(spec_of(nodeSelector={}, tolerations=[]), spec_of())
    assert not semantically_equal(spec_of(affinity={}), spec_of())
