"""Definitions that upstream stored, which it does as v1beta1, are shown and served as v1."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from whole_server import store_of, whole_server

from pilothouse.client import Json
from pilothouse.extensions.customresourcedefinitions.forms import from_beta

BETA: Json = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "metadata": {"name": "noxus.example.com", "creationTimestamp": None},
    "spec": {
        "group": "example.com",
        "version": "v1beta1",
        "scope": "Cluster",
        "names": {"plural": "noxus", "kind": "Noxu"},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}],
    },
    "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None},
}


async def test_a_definition_without_a_schema_is_established_and_its_objects_keep_everything(tmp_path: Path) -> None:
    async with store_of(tmp_path) as store:
        key = "/registry/apiextensions.k8s.io/customresourcedefinitions/noxus.example.com"
        await store.create(key, orjson.dumps(BETA))
    async with whole_server(tmp_path) as api:
        shown = await api.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/noxus.example.com")
        assert shown.json["apiVersion"] == "apiextensions.k8s.io/v1"
        assert shown.json["spec"] == {
            "group": "example.com",
            "names": {"plural": "noxus", "singular": "noxu", "kind": "Noxu", "listKind": "NoxuList"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                }
            ],
            "conversion": {"strategy": "None"},
            "preserveUnknownFields": True,
        }
        noxu = {"apiVersion": "example.com/v1beta1", "kind": "Noxu", "metadata": {"name": "a"}, "spec": {"size": 1}}
        path = "/apis/example.com/v1beta1/noxus/a?fieldManager=test"
        applied = await api.request("PATCH", path, noxu, media="application/apply-patch+yaml")
        assert (applied.status, applied.json["spec"]) == (201, {"size": 1})


@pytest.mark.parametrize(
    ("beta", "v1"),
    [
        ({"strategy": "None"}, {"strategy": "None"}),
        (
            {"strategy": "Webhook", "webhookClientConfig": {"service": {"name": "a", "namespace": "b"}}},
            {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1beta1"],
                    "clientConfig": {"service": {"name": "a", "namespace": "b", "port": 443}},
                },
            },
        ),
    ],
)
def test_the_webhook_of_a_conversion_moves_into_a_field_of_its_own(beta: Json, v1: Json) -> None:
    definition: Json = {"apiVersion": "apiextensions.k8s.io/v1beta1", "spec": {"conversion": beta}}
    from_beta(definition)
    assert definition["spec"]["conversion"] == v1


def test_schemas_and_subresources_of_all_versions_move_into_each() -> None:
    schema: Json = {"openAPIV3Schema": {"type": "object"}}
    status: Json = {"status": {}}
    versions = [{"name": "v1", "served": True, "storage": False}, {"name": "v2", "served": True, "storage": True}]
    spec = {"validation": schema, "subresources": status, "preserveUnknownFields": False, "versions": versions}
    definition: Json = {"apiVersion": "apiextensions.k8s.io/v1beta1", "spec": spec}
    from_beta(definition)
    assert [(each["schema"], each["subresources"]) for each in definition["spec"]["versions"]] == [(schema, status)] * 2
    assert "preserveUnknownFields" not in definition["spec"]
    assert definition["status"]["storedVersions"] == ["v2"]
