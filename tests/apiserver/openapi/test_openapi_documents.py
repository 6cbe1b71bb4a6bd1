"""The two kinds of documents, made from groups."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from openapi_groups import (
    CONFIG_MAPS,
    EVERYTHING,
    config_maps,
    container,
    core,
    served,
    storage,
    v2_document,
    v3_document,
)

from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.serializers.registry import JSON, YAML
from pilothouse.apiserver.openapi import v3
from pilothouse.apiserver.openapi.definitions import PACKAGED, Definition
from pilothouse.apiserver.openapi.route import Info, RouteContainer
from pilothouse.apiserver.registry.resource import Names
from pilothouse.machinery.generated import definitions
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
ITEM = "/api/v1/namespaces/{namespace}/configmaps/{name}"


def references(document: Any) -> set[str]:
    return set(re.findall(r'"\$ref":"([^"]+)"', orjson.dumps(document).decode()))


def resolved(document: Json, reference: str) -> Any:
    found: Any = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def apps() -> APIVersion:
    kind = GroupVersionKind("apps", "v1", "Deployment")
    return APIVersion(
        GroupVersion("apps", "v1"), [served(Names("deployments", kind="Deployment"), kind, storage(*EVERYTHING))]
    )


@pytest.mark.parametrize("document", [v3_document(core(config_maps())), v2_document(core(config_maps()), apps())])
def test_every_reference_leads_to_something_in_the_same_document(document: Json) -> None:
    found = references(document)
    assert len(found) > 10
    assert all(resolved(document, reference) for reference in found)


@pytest.mark.parametrize("document", [v3_document(core(config_maps())), v2_document(core(config_maps()), apps())])
def test_operation_ids_are_unique(document: Json) -> None:
    ids = [op["operationId"] for item in document["paths"].values() for op in item.values() if isinstance(op, dict)]
    assert len(ids) == len(set(ids)) > 10


def test_what_all_operations_of_a_path_take_is_said_for_the_path() -> None:
    item = v3_document(core(config_maps()))["paths"][ITEM]
    assert [parameter["name"] for parameter in item["parameters"]] == ["name", "namespace", "pretty"]
    assert "parameters" not in item["get"]
    put = {parameter["name"]: parameter for parameter in item["put"]["parameters"]}
    assert put["fieldValidation"]["schema"] == {"type": "string", "uniqueItems": True}
    assert put["fieldValidation"]["in"] == "query"


def test_an_operation_tells_its_action_its_kind_and_its_schemas() -> None:
    operation = v3_document(core(config_maps()))["paths"][ITEM]["put"]
    schema = {"$ref": "#/components/schemas/io.k8s.api.core.v1.ConfigMap"}
    assert operation["x-kubernetes-action"] == "put"
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert operation["requestBody"] == {"content": {"*/*": {"schema": schema}}, "required": True}
    assert set(operation["responses"]) == {"200", "201", "401"}
    assert operation["responses"]["201"]["content"]["application/vnd.kubernetes.protobuf"] == {"schema": schema}


def test_the_body_of_a_delete_may_be_missing() -> None:
    assert "required" not in v3_document(core(config_maps()))["paths"][ITEM]["delete"]["requestBody"]


def test_version_3_keeps_references_alone_and_tells_defaults() -> None:
    schemas = v3_document(apps())["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert (port["containerPort"]["default"], port["protocol"]["default"]) == (0, "TCP")
    assert "default" not in port["name"]
    template = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["template"]
    assert template["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}]
    assert (template["default"], "$ref" in template) == ({}, False)
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["items"]["default"] == {}
    selector = schemas["io.k8s.api.core.v1.ConfigMapKeySelector"]["properties"]["name"]
    assert selector["default"] == ""


def test_version_3_tells_all_forms_of_quantities_and_of_ports() -> None:
    schemas = v3_document(apps())["components"]["schemas"]
    quantity = schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity["oneOf"] == [{"type": "string"}, {"type": "number"}]
    port = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert port["oneOf"] == [{"type": "integer"}, {"type": "string"}]


def test_kinds_that_are_in_every_group_are_told_for_this_one_and_the_legacy_group() -> None:
    watch_event = v3_document(apps())["components"]["schemas"][f"{META}.WatchEvent"]
    kinds = [(kind["group"], kind["version"]) for kind in watch_event["x-kubernetes-group-version-kind"]]
    assert kinds == [("", "v1"), ("apps", "v1")]
    everywhere = v2_document(apps())["definitions"][f"{META}.WatchEvent"]["x-kubernetes-group-version-kind"]
    assert len(everywhere) > 20


def test_every_packaged_definition_has_a_form_in_both_versions() -> None:
    names = definitions().keys()
    assert len(names) > 700
    for name in names:
        assert set(PACKAGED.v2(name).references) <= names
        assert set(PACKAGED.v3(name).references) <= names
        assert b"#/definitions/" not in PACKAGED.v3(name).json


def test_version_2_writes_shared_parameters_once_and_those_that_old_clients_look_for_each_time() -> None:
    document = v2_document(core(config_maps()))
    [body, *rest] = document["paths"][ITEM]["put"]["parameters"]
    assert body == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.ConfigMap"},
    }
    assert [parameter.get("name") for parameter in rest] == ["dryRun", None, "fieldValidation"]
    manager = resolved(document, rest[1]["$ref"])
    assert (manager["name"], manager["type"]) == ("fieldManager", "string")
    patch = resolved(document, document["paths"][ITEM]["patch"]["parameters"][0]["$ref"])
    assert patch["schema"] == {"$ref": f"#/definitions/{META}.Patch"}


def test_version_2_has_all_groups_and_says_how_to_authenticate() -> None:
    document = v2_document(core(config_maps()), apps())
    assert {"/api/v1/configmaps", "/apis/apps/v1/deployments"} <= document["paths"].keys()
    assert document["security"] == [{"BearerToken": []}]
    assert document["securityDefinitions"]["BearerToken"]["in"] == "header"
    assert document["paths"][ITEM]["get"]["schemes"] == ["https"]


def test_shared_parameters_have_upstreams_words_and_names() -> None:
    parameters = v2_document(core(config_maps()), apps())["parameters"]
    known = {"allowWatchBookmarks-HC2hJt-J", "body-2Y1dVQaQ", "body-78PwaGsr", "fieldManager-7c6nTn1T"}
    assert known | {"fieldManager-Qy4HdaTW", "namespace-vgWSWtn3", "pretty-tJGM1-ng"} <= parameters.keys()


def test_a_kind_that_nobody_described_is_some_object() -> None:
    nobodys = served(CONFIG_MAPS, GroupVersionKind("example.com", "v1", "Nothing"), storage("get"))
    schemas = orjson.loads(v3.document(container(core(nobodys))))["components"]["schemas"]
    assert schemas["com.example.v1.Nothing"]["type"] == "object"


SHELF: Json = {"type": "object", "properties": {"metadata": {"$ref": f"#/components/schemas/{META}.ObjectMeta"}}}


class WithShelves:
    """The packaged definitions and those of one kind that is not built in."""

    own = ("com.example.v1.Shelf", "com.example.v1.ShelfList")

    def v2(self, name: str) -> Definition:
        return Definition.of({"type": "object"}) if name in self.own else PACKAGED.v2(name)

    def v3(self, name: str) -> Definition:
        return Definition.of(SHELF) if name in self.own else PACKAGED.v3(name)


def test_kinds_that_are_not_built_in_bring_their_own_definitions() -> None:
    kind = GroupVersionKind("example.com", "v1", "Shelf")
    shelves = served(Names("shelves", kind="Shelf"), kind, storage(*EVERYTHING), serializers=(JSON, YAML))
    routes = container(APIVersion(kind.group_version, [shelves])).routes
    custom = RouteContainer("apis/example.com/v1", routes, WithShelves(), kind.group_version, Info("Shelves", "v1"))
    document = orjson.loads(v3.document(custom))
    assert document["info"] == {"title": "Shelves", "version": "v1"}
    assert document["components"]["schemas"]["com.example.v1.Shelf"] == SHELF
    assert f"{META}.ObjectMeta" in document["components"]["schemas"]
    listed = document["paths"]["/apis/example.com/v1/shelves"]["get"]
    assert listed["operationId"] == "listExampleComV1ShelfForAllNamespaces"
    assert set(listed["responses"]["200"]["content"]) == {
        "application/json",
        "application/json;stream=watch",
        "application/yaml",
    }


def test_two_servers_with_the_same_routes_publish_the_same_bytes() -> None:
    assert v3.document(container(core(config_maps()))) == v3.document(container(core(config_maps())))
