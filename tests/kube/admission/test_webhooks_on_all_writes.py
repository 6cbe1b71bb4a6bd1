"""Which writes webhooks see: subresources, connections and custom resources; and nothing that only reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admission_webhooks import AdmissionWebhooks, admission_webhooks, patching
from custom_resources import DEFINITIONS, definition, until_condition, version, widget
from sample_pods import pod
from whole_server import whole_server

from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
PODS = "/api/v1/namespaces/default/pods"
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"
NAMED = {"metadata": {"name": "p"}}
MERGE = {"media": "application/merge-patch+json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hooks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AdmissionWebhooks]:
    folder: Path = tmp_path_factory.mktemp("store")
    async with whole_server(folder) as api, admission_webhooks(api) as hooks:
        scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
        subresources: dict[str, Any] = {"subresources": {"status": {}, "scale": scale}}
        versions = [version("v1", **subresources), version("v2", storage=False, **subresources)]
        await api.request("POST", DEFINITIONS, definition(*versions))
        await until_condition(api, "widgets.example.com", "Established")
        assert (await api.request("POST", PODS, pod(meta={"name": "p"}))).status == 201
        yield hooks


def seen(request: Json) -> tuple[Any, ...]:
    resource = "/".join(filter(None, (request["resource"]["resource"], request.get("subResource"))))
    return (
        request["operation"],
        resource,
        (request["object"] or {}).get("kind"),
        (request["oldObject"] or {}).get("kind"),
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("PATCH", f"{PODS}/p/status", {"status": {"reason": "x"}}, ("UPDATE", "pods/status", "Pod", "Pod")),
        ("POST", f"{PODS}/p/binding", {**NAMED, "target": {"name": "n"}}, ("CREATE", "pods/binding", "Binding", None)),
        ("POST", f"{PODS}/p/eviction?dryRun=All", NAMED, ("CREATE", "pods/eviction", "Eviction", None)),
        ("GET", f"{PODS}/p/exec?command=ls", None, ("CONNECT", "pods/exec", "PodExecOptions", None)),
        ("GET", f"{PODS}/p/proxy/a", None, ("CONNECT", "pods/proxy", "PodProxyOptions", None)),
    ],
)
async def test_subresources_are_seen_with_the_objects_that_they_take(
    hooks: AdmissionWebhooks, method: str, path: str, body: Json | None, expected: tuple[str, ...]
) -> None:
    async with (
        hooks.configured("mutating", hooks.webhook("m", rules=EVERYTHING)),
        hooks.configured("validating", hooks.webhook("v", rules=EVERYTHING)) as calls,
    ):
        await hooks.api.request(method, path, body, **(MERGE if method == "PATCH" else {}))
    assert [(name, *seen(request)) for name, request in calls] == [("m", *expected), ("v", *expected)]


async def test_nothing_that_only_reads_is_seen(hooks: AdmissionWebhooks) -> None:
    async with hooks.configured("validating", hooks.webhook("v", rules=EVERYTHING)) as calls:
        for path in (f"{PODS}/p", PODS, f"{PODS}/p/log", WIDGETS.format("v1")):
            await hooks.api.request("GET", path)
    assert not calls


async def test_the_options_of_a_connection_are_its_object_and_can_be_changed(hooks: AdmissionWebhooks) -> None:
    """What is refused for its path shows what the kubelet would have been asked for."""
    change = patching({"op": "replace", "path": "/container", "value": "other"})
    query = "command=ls&command=-l&stdin=true&container=main"
    async with hooks.configured("mutating", hooks.webhook("m", change, rules=EVERYTHING)) as calls:
        answer = await hooks.api.request("GET", f"{PODS}/p/exec?{query}")
    assert calls[0][1]["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdin": True,
        "container": "main",
        "command": ["ls", "-l"],
    }
    assert answer.json["message"] == "container other is not valid for pod p"


async def test_a_custom_resource_is_seen_in_the_version_that_the_rule_names(hooks: AdmissionWebhooks) -> None:
    rules = [{**EVERYTHING[0], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}]
    change = patching(
        {"op": "add", "path": "/spec", "value": {"color": "red", "nobody": "knows"}},
    )
    path = WIDGETS.format("v2") + "?dryRun=All"
    async with hooks.configured("mutating", hooks.webhook("m", change, rules=rules)) as calls:
        answer = await hooks.api.request("POST", path, widget(api_version="v2"))
    [(_, request)] = calls
    assert (request["object"]["apiVersion"], request["requestKind"]["version"]) == ("example.com/v1", "v2")
    assert answer.json["apiVersion"] == "example.com/v2"
    assert answer.json["spec"] == {"color": "red", "size": 1}, "pruned and with defaults"


async def test_subresources_of_custom_resources_are_seen(hooks: AdmissionWebhooks) -> None:
    path = f"{WIDGETS.format('v2')}/w"
    await hooks.api.request("POST", WIDGETS.format("v2"), widget("w", api_version="v2", spec={}))
    async with hooks.configured("validating", hooks.webhook("v", rules=EVERYTHING)) as calls:
        await hooks.api.request("PATCH", f"{path}/status", {"status": {"size": 2}}, **MERGE)
        await hooks.api.request("PATCH", f"{path}/scale", {"spec": {"replicas": 2}}, **MERGE)
        await hooks.api.request("DELETE", WIDGETS.format("v1"))
    assert [seen(request) for _, request in calls] == [
        ("UPDATE", "widgets/status", "Widget", "Widget"),
        ("UPDATE", "widgets/scale", "Scale", "Scale"),
        ("DELETE", "widgets", None, "Widget"),
    ]


async def test_a_custom_resource_that_a_webhook_breaks_is_refused(hooks: AdmissionWebhooks) -> None:
    change = patching({"op": "add", "path": "/spec", "value": {"size": "large"}})
    rules = [{**EVERYTHING[0], "apiGroups": ["example.com"]}]
    async with hooks.configured("mutating", hooks.webhook("m", change, rules=rules)):
        answer = await hooks.api.request("POST", WIDGETS.format("v1") + "?dryRun=All", widget())
    assert answer.status == 422
    assert "spec.size: Invalid value" in answer.json["message"]


async def test_a_namespace_lies_in_itself(hooks: AdmissionWebhooks) -> None:
    rules = [{**EVERYTHING[0], "resources": ["namespaces"], "scope": "Cluster"}]
    chosen: dict[str, Any] = {
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mine"}},
    }
    async with hooks.configured("validating", hooks.webhook("v", **chosen)) as calls:
        for name in ("mine", "other"):
            await hooks.api.request("POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": name}})
    assert [(request["name"], request["namespace"]) for _, request in calls] == [("mine", "mine")]


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ({"op": "replace", "path": "/kind", "value": "Gadget"}, 422, 'kind: Invalid value: "Gadget": must be Widget'),
        (
            {"op": "replace", "path": "/apiVersion", "value": "example.com/v9"},
            500,
            "request to convert CR from an invalid group/version: example.com/v9",
        ),
        ({"op": "remove", "path": "/kind"}, 500, "Object 'Kind' is missing in"),
        ({"op": "remove", "path": "/metadata"}, 422, "name or generateName is required"),
    ],
)
async def test_a_custom_resource_cannot_become_something_else(
    hooks: AdmissionWebhooks, operation: Json, code: int, message: str
) -> None:
    rules = [{**EVERYTHING[0], "apiGroups": ["example.com"]}]
    async with hooks.configured("mutating", hooks.webhook("m", patching(operation), rules=rules)):
        answer = await hooks.api.request("POST", WIDGETS.format("v1") + "?dryRun=All", widget())
    assert answer.status == code
    assert message in answer.json["message"]
