"""Lists, maps and bytes that come empty are there for every rule, and gone from what is printed: as in Go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.apiserver.endpoints.fieldmanager import manager
from pilothouse.client import Json
from pilothouse.testing import API

APPS = "/apis/apps/v1/namespaces/default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
POD: Json = {"containers": [{"name": "a", "image": "b"}]}
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [], "nonResourceURLs": []}
TERM = [{"key": "k", "operator": "Exists", "values": []}]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


def obj(api_version: str, kind: str, name: str = "a", **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def ephemeral_volume(**metadata: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": metadata, "spec": spec}}}


def definition(**schema: Any) -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
    }
    names = {"plural": "ks", "kind": "K"}
    spec = {"group": "g.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", "ks.g.io", spec=spec)


REFUSED = {
    "autoscaler without policies": (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        obj(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "behavior": {"scaleDown": {"policies": []}},
            },
        ),
        'HorizontalPodAutoscaler.autoscaling "a" is invalid: spec.behavior.scaleDown.policies: Required value: '
        "must specify at least one Policy",
    ),
    "slice with both": (
        "/apis/resource.k8s.io/v1/resourceslices",
        obj(
            "resource.k8s.io/v1",
            "ResourceSlice",
            spec={
                "driver": "d.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
                "sharedCounters": [],
                "devices": [{"name": "x"}],
            },
        ),
        'ResourceSlice.resource.k8s.io "a" is invalid: spec: Invalid value: "": only one of `sharedCounters` or '
        "`devices` is allowed",
    ),
    "finalizers of a claim template": (
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
        obj(
            "resource.k8s.io/v1",
            "ResourceClaimTemplate",
            spec={"metadata": {"finalizers": []}, "spec": {"devices": {}}},
        ),
        'ResourceClaimTemplate.resource.k8s.io "a" is invalid: spec.metadata.finalizers: Forbidden: cannot be set',
    ),
    "finalizers of an ephemeral volume": (
        "/api/v1/namespaces/default/pods",
        obj("v1", "Pod", spec=POD | {"volumes": [ephemeral_volume(finalizers=[])]}),
        'Pod "a" is invalid: spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: '
        "cannot be set",
    ),
    "labels": (
        f"{APPS}/deployments",
        obj(
            "apps/v1",
            "Deployment",
            spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {}}, "spec": POD}},
        ),
        'Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: {}: `selector` does not match '
        "template `labels`",
    ),
    "no labels": (
        f"{APPS}/deployments",
        obj("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": POD}}),
        'Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: null: `selector` does not match '
        "template `labels`",
    ),
    "schema dependencies": (
        DEFINITIONS,
        definition(dependencies={}),
        'CustomResourceDefinition.apiextensions.k8s.io "ks.g.io" is invalid: '
        "spec.validation.openAPIV3Schema.dependencies: Forbidden: dependencies is not supported",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_empty_is_validated_as_something(api: API, case: str) -> None:
    path, sent, message = REFUSED[case]
    answer = await api.request("POST", path, deepcopy(sent))
    assert (answer.status, answer.json["message"]) == (422, message)


async def test_what_is_empty_is_shown_as_it_was_sent_when_it_may_not_change(api: API) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    made = obj("storage.k8s.io/v1", "StorageClass", provisioner="x.y/z", parameters={"a": "b"})
    assert (await api.request("POST", path, made)).status == 201
    for sent, shown in (({}, "{}"), (None, "null")):
        answer = await api.request("PUT", f"{path}/a", made | {"parameters": sent})
        assert answer.status == 422
        assert f"parameters: Invalid value: {shown}: field is immutable" in answer.json["message"]


async def test_a_list_that_is_always_printed_is_owned_when_it_comes_empty(api: API) -> None:
    role = obj("rbac.authorization.k8s.io/v1", "Role", rules=[])
    created = (await api.request("POST", ROLES, role)).json
    assert created["rules"] is None
    assert created["metadata"]["managedFields"][0]["fieldsV1"] == {"f:rules": {}}


async def test_nobody_owns_what_is_not_printed(api: API) -> None:
    created = await create_config_map(api, "a", data={}, metadata={"labels": {}, "finalizers": []})
    assert "data" not in created
    assert not created["metadata"].keys() & {"labels", "finalizers", "managedFields"}


async def test_a_dry_run_answers_what_the_store_would(api: API) -> None:
    role = obj("rbac.authorization.k8s.io/v1", "Role", rules=[]) | {"metadata": {"name": "a", "labels": {}}}
    answer = (await api.request("POST", f"{ROLES}?dryRun=All", role)).json
    assert answer["rules"] is None
    assert "labels" not in answer["metadata"]


async def test_an_empty_list_in_a_review_is_not_printed(api: API) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x", "audiences": []}}
    answer = await api.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert "audiences" not in answer.json["spec"]


async def test_resources_of_a_node_that_come_empty_are_defaulted(api: API) -> None:
    node = obj("v1", "Node", status={"capacity": {"cpu": "1"}, "allocatable": {}})
    assert (await api.request("POST", "/api/v1/nodes", node)).json["status"]["allocatable"] == {"cpu": "1"}


async def test_empties_do_not_begin_a_generation_where_upstream_compares_semantically(api: API) -> None:
    selected = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
    made = obj("apps/v1", "Deployment", spec=selected)
    assert (await api.request("POST", f"{APPS}/deployments", made)).status == 201
    changed = deepcopy(made)
    changed["spec"]["template"]["spec"] |= {"nodeSelector": {}, "tolerations": []}
    answer = (await api.request("PUT", f"{APPS}/deployments/a", changed)).json
    assert answer["metadata"]["generation"] == 1


async def test_empties_begin_a_generation_where_upstream_compares_deeply(api: API) -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    made = obj("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}})
    assert (await api.request("POST", path, made)).status == 201
    answer = await api.request("PATCH", f"{path}/a", {"spec": {"ingress": []}}, media=MERGE)
    assert answer.json["metadata"]["generation"] == 2
    assert "ingress" not in answer.json["spec"]


async def test_empty_bytes_are_never_shown_but_compared(api: API) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    hook = {
        "name": "a.b.c",
        "clientConfig": {"caBundle": "", "url": "https://x.y/z"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    made = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=[hook])
    created = (await api.request("POST", path, made)).json
    assert created["webhooks"][0]["clientConfig"] == {"url": "https://x.y/z"}
    made["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    assert (await api.request("PUT", f"{path}/a", made)).json["metadata"]["generation"] == 1
    for value in "12":
        patch = {"metadata": {"labels": {"a": value}}}
        patched = (await api.request("PATCH", f"{path}/a", patch, media=MERGE)).json
        assert patched["metadata"]["generation"] == 2


async def test_data_of_an_immutable_config_map_may_become_empty_but_not_its_binary_data(api: API) -> None:
    await create_config_map(api, "a", immutable=True)
    assert (await api.request("PATCH", f"{CONFIG_MAPS}/a", {"data": {}}, media=MERGE)).status == 200
    answer = await api.request("PATCH", f"{CONFIG_MAPS}/a", {"binaryData": {}}, media=MERGE)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["binaryData"]


@pytest.mark.parametrize(
    ("path", "applied"),
    [
        ("/api/v1/namespaces/default/configmaps/a", obj("v1", "ConfigMap", data={})),
        (f"{ROLES}/a", obj("rbac.authorization.k8s.io/v1", "Role", rules=[])),
        (
            "/api/v1/namespaces/default/services/a",
            obj("v1", "Service", spec={"ports": [{"port": 1}], "externalIPs": []}),
        ),
        (
            "/api/v1/namespaces/default/pods/a",
            obj("v1", "Pod", spec={"nodeSelector": {}, "containers": [{"name": "a", "image": "b", "env": []}]}),
        ),
    ],
)
async def test_applying_an_empty_map_or_list_again_changes_nothing(
    api: API, monkeypatch: pytest.MonkeyPatch, path: str, applied: Json
) -> None:
    applied = {**applied, "metadata": {**applied["metadata"], "labels": {}, "annotations": {}}}
    answers = []
    for second in range(2):
        monkeypatch.setattr(manager, "now", lambda second=second: f"2024-01-01T00:00:0{second}Z")
        answers.append(await api.request("PATCH", f"{path}?fieldManager=one", applied, media=APPLY))
    assert [answer.status for answer in answers] == [201, 200]
    assert answers[0].json == answers[1].json


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (ROLES, obj("rbac.authorization.k8s.io/v1", "Role", rules=[RULE])),
        (
            "/api/v1/persistentvolumes",
            obj(
                "v1",
                "PersistentVolume",
                spec={
                    "capacity": {"storage": "1024Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/a"},
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchFields": [], "matchExpressions": TERM}]}
                    },
                },
            ),
        ),
    ],
)
async def test_update_with_empty_lists_in_atomic_lists_changes_neither_owner_nor_version(
    api: API, path: str, body: Json
) -> None:
    made = await api.request("POST", f"{path}?fieldManager=one", body)
    assert made.status == 201, made.body
    sent = {**made.json, **body, "metadata": made.json["metadata"]}
    again = await api.request("PUT", f"{path}/a?fieldManager=two", sent)
    assert again.json == made.json
