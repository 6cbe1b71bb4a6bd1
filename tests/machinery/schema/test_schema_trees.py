"""Type trees: facts and published definitions agree, and say how fields merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.machinery import generated
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.patch import strategic
from pilothouse.machinery.patch.interface import PatchFailed, PatchSchema, SchemaKind
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.nodes import NodeKind, TypeNode
from pilothouse.machinery.schema.object_type import ObjectType

WITHOUT_STRUCT = {"JSON", "Quantity", "FieldsV1", "MicroTime", "Time", "RawExtension", "IntOrString", "Info"}


def kind(api_version: str, name: str) -> ObjectType:
    found = types.of(GroupVersion.parse(api_version).kind(name))
    assert found is not None
    return found


def struct(name: str) -> TypeNode:
    found = types.definition(f"io.k8s.{name}")
    assert found is not None
    return found


def test_every_definition_has_exactly_the_fields_that_gos_struct_has() -> None:
    different = {
        name
        for name, schema in generated.definitions().items()
        if (node := types.definition(name)) is not None and node.fields.keys() != schema.get("properties", {}).keys()
    }
    assert different == set()


def test_only_types_that_are_no_objects_have_no_struct() -> None:
    missing = {name.rpartition(".")[2] for name in generated.definitions() if types.definition(name) is None}
    assert {name for name in missing if not name.startswith("JSONSchemaPropsOr")} == WITHOUT_STRUCT


def test_every_published_kind_has_a_type() -> None:
    kinds = [
        GroupVersionKind(gvk["group"], gvk["version"], gvk["kind"])
        for schema in generated.definitions().values()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    ]
    assert len(kinds) > 300
    assert [gvk for gvk in kinds if types.of(gvk) is None] == []


def test_lists_say_how_they_merge() -> None:
    spec = struct("api.core.v1.PodSpec")
    container = spec.fields["containers"].node.element
    assert container is not None
    ports = container.fields["ports"]
    assert (ports.node.kind, ports.node.list_type) == (NodeKind.LIST, "map")
    assert ports.node.map_keys == ("containerPort", "protocol")
    assert (ports.patch_strategy, ports.patch_merge_key) == (("merge",), "containerPort")
    assert spec.fields["volumes"].patch_strategy == ("merge", "retainKeys")
    assert spec.fields["nodeSelector"].node.map_type == "atomic"
    assert spec.fields["tolerations"].node.list_type == "atomic"


def test_structs_say_how_they_merge() -> None:
    assert struct("apimachinery.pkg.apis.meta.v1.LabelSelector").map_type == "atomic"
    assert struct("api.core.v1.PodSpec").map_type == ""


def test_a_tree_may_contain_itself() -> None:
    props = struct("apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert props.fields["properties"].node.element is props


def test_definitions_are_as_openapi_shows_them() -> None:
    definitions = generated.definitions()
    pod = definitions["io.k8s.api.core.v1.Pod"]
    assert pod["type"] == "object"
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"
    assert "enum" not in pod["properties"]["kind"]
    assert definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"] == "int-or-string"


def test_missing_files_say_how_to_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "_FOLDER", tmp_path)
    generated.definitions.cache_clear()
    with pytest.raises(generated.MissingTypes, match=r"definitions\.json is missing: .*pip install"):
        generated.definitions()


def test_a_strategic_merge_patch_finds_merge_keys_in_the_type() -> None:
    pod = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}], "tolerations": [{}]}}
    patch = {"spec": {"containers": [{"name": "b", "image": "2"}], "tolerations": [{"key": "x"}]}}
    found = strategic.apply(pod, patch, kind("v1", "Pod").patch_schema)
    assert sorted(found["spec"]["containers"], key=lambda item: item["name"]) == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "2"},
    ]
    assert found["spec"]["tolerations"] == [{"key": "x"}]


def test_a_strategic_merge_patch_of_a_field_that_the_type_lacks_is_refused() -> None:
    patch = {"spec": {"containers": [], "bogus": {"a": 1}}}
    with pytest.raises(PatchFailed, match='unable to find api field in struct PodSpec for the json field "bogus"'):
        strategic.apply({"spec": {"bogus": {}}}, patch, kind("v1", "Pod").patch_schema)


def test_patches_see_gos_kinds() -> None:
    def at(schema: PatchSchema, *path: str) -> PatchSchema:
        for name in path:
            found = schema.field(name)
            assert found is not None
            schema = found
        return schema

    pod = kind("v1", "Pod").patch_schema
    assert (pod.kind, pod.name, pod.element) == (SchemaKind.STRUCT, "Pod", None)
    assert (at(pod, "metadata", "labels").kind, at(pod, "metadata", "labels").name) == (SchemaKind.MAP, "map")
    assert (at(pod, "spec", "priority").kind, at(pod, "spec", "priority").name) == (SchemaKind.PRIMITIVE, "int32")
    containers = at(pod, "spec", "containers")
    assert (containers.kind, containers.merge_key, containers.strategies) == (
        SchemaKind.LIST,
        "name",
        frozenset({"merge"}),
    )
    assert containers.element is not None
    assert containers.element.name == "Container"
    data = at(kind("apps/v1", "ControllerRevision").patch_schema, "data")
    assert (data.kind, data.name, data.field("x")) == (SchemaKind.STRUCT, "RawExtension", None)
    bundle = at(kind("apiregistration.k8s.io/v1", "APIService").patch_schema, "spec", "caBundle")
    assert bundle.kind is SchemaKind.LIST
