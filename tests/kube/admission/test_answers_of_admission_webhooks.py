"""Answers of admission webhooks on real TLS sockets: what they change, what does not count, and who is asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from admission_webhooks import AdmissionWebhooks, Respond, create, patching
from aiohttp import web
from certificates_fixture import TestCA
from patience import PATIENCE
from whole_server import CONFIG_MAPS, create_config_map

from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_webhooks_change_is_stored_and_seen_by_those_after_them(hooks: AdmissionWebhooks) -> None:
    first = hooks.webhook("first", patching({"op": "add", "path": "/data/b", "value": "c"}))
    second = hooks.webhook("second", patching({"op": "remove", "path": "/data/a"}))
    async with (
        hooks.configured("mutating", second, name="b"),
        hooks.configured("mutating", first, name="a") as calls,
    ):
        answer = await create(hooks)
    assert answer.json["data"] == {"b": "c"}
    assert [(path, request["object"]["data"]) for path, request in calls] == [
        ("first", {"a": "b"}),
        ("second", {"a": "b", "b": "c"}),
    ]


async def test_a_changed_object_is_read_as_if_a_client_had_sent_it(hooks: AdmissionWebhooks) -> None:
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"]}
    ports = {"op": "add", "path": "/spec/ports", "value": [{"port": 80, "nobody": "knows"}]}
    async with hooks.configured("mutating", hooks.webhook("m", patching(ports), rules=[rule])):
        answer = await hooks.api.request("POST", "/api/v1/namespaces/default/services?dryRun=All", service)
    assert answer.json["spec"]["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]


async def test_a_changed_object_must_still_be_valid(hooks: AdmissionWebhooks) -> None:
    bad = patching({"op": "add", "path": "/data/not~1a~1key", "value": "c"})
    async with hooks.configured("mutating", hooks.webhook("m", bad)):
        answer = await create(hooks)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "remove", "path": "/data/x"}, "Unable to remove nonexistent key: x"),
        ({"op": "add", "path": "/data", "value": 1}, "json: cannot unmarshal number into"),
        ({"op": "replace", "path": "/kind", "value": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown"),
        ({"op": "replace", "path": "/kind", "value": "Odd"}, 'no kind "Odd" is registered for version "v1"'),
    ],
)
async def test_a_patch_that_does_not_fit_is_an_internal_error(
    hooks: AdmissionWebhooks, operation: Json, message: str
) -> None:
    async with hooks.configured("mutating", hooks.webhook("m", patching(operation), failurePolicy="Ignore")):
        answer = await create(hooks)
    assert (answer.status, answer.json["reason"]) == (500, "InternalError")
    assert message in answer.json["message"]


async def test_a_changed_object_cannot_escape_its_request(hooks: AdmissionWebhooks) -> None:
    elsewhere = patching({"op": "add", "path": "/metadata/namespace", "value": "other"})
    async with hooks.configured("mutating", hooks.webhook("m", elsewhere)):
        answer = await create(hooks)
    assert answer.status == 400
    assert "does not match the namespace sent on the request" in answer.json["message"]


async def test_an_object_that_lost_its_kind_still_is_what_it_was(hooks: AdmissionWebhooks) -> None:
    gone = patching({"op": "remove", "path": "/kind"}, {"op": "remove", "path": "/apiVersion"})
    async with hooks.configured("mutating", hooks.webhook("m", gone)):
        assert (await create(hooks)).json["kind"] == "ConfigMap"


async def test_what_is_deleted_cannot_be_changed(hooks: AdmissionWebhooks) -> None:
    await create_config_map(hooks.api, "stays")
    change = patching({"op": "add", "path": "/data/b", "value": "c"})
    async with hooks.configured("mutating", hooks.webhook("m", change)):
        answer = await hooks.api.request("DELETE", f"{CONFIG_MAPS}/stays")
    assert answer.json["message"] == (
        'Internal error occurred: admission webhook "m.example.com" attempted to modify the object, '
        "which is not supported for this operation"
    )
    assert (await hooks.api.request("GET", f"{CONFIG_MAPS}/stays")).status == 200


def lie(**fields: Any) -> Respond:
    return lambda _: web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", **fields})


@pytest.mark.parametrize(
    ("respond", "message"),
    [
        (lie(), "received invalid webhook response: webhook response was absent"),
        (lambda _: {"uid": "x", "allowed": True}, 'received invalid webhook response: expected response.uid="'),
        (
            lambda request: web.json_response({"response": {"uid": request["uid"], "allowed": True}}),
            "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
            "Kind=AdmissionReview, got /, Kind=",
        ),
        (
            lie(apiVersion="admission.k8s.io/v1beta1", response={}),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (lie(kind="Pod"), 'failed to call webhook: no kind "Pod" is registered for version "admission.k8s.io/v1"'),
        (
            lambda _: {"allowed": "yes"},
            "failed to call webhook: json: cannot unmarshal string into Go struct field "
            "AdmissionResponse.response.allowed of type bool",
        ),
        (lambda _: {"allowed": True, "patch": "?"}, "failed to call webhook: illegal base64 data at input byte 0"),
        (
            lambda _: {"allowed": True, "patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            lambda _: {"allowed": True, "patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        (
            lambda _: {"allowed": True, "patchType": "Merge", "patch": "W3sib3AiOiJhZGQifV0="},
            'unsupported patch type "Merge"',
        ),
        (
            lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": "e30="},
            "received undecodable patch in webhook response: json: cannot unmarshal object",
        ),
        (lambda _: web.Response(text="hello"), "failed to call webhook: couldn't get version/kind"),
        (lambda _: web.Response(status=500, text="broken"), "failed to call webhook: an error on the server"),
        (lambda _: web.Response(status=302, headers={"location": "/m"}), "failed to call webhook: "),
    ],
)
async def test_a_webhook_that_lies_counts_as_one_that_cannot_be_asked(
    hooks: AdmissionWebhooks, respond: Respond, message: str
) -> None:
    async with hooks.configured("mutating", hooks.webhook("m", respond)):
        refused = await create(hooks)
    assert (refused.status, refused.json["reason"]) == (500, "InternalError")
    said = 'Internal error occurred: failed calling webhook "m.example.com": '
    assert refused.json["message"].startswith(said + message)
    assert refused.json["details"]["causes"][0]["message"] == refused.json["message"].removeprefix(
        "Internal error occurred: "
    )
    async with hooks.configured("mutating", hooks.webhook("m", respond, failurePolicy="Ignore")):
        assert (await create(hooks)).status == 201


@pytest.mark.parametrize(("field", "value"), [("patch", "W10="), ("patchType", "JSONPatch")])
async def test_a_validating_webhook_may_not_patch(hooks: AdmissionWebhooks, field: str, value: str) -> None:
    async with hooks.configured("validating", hooks.webhook("v", lambda _: {"allowed": True, field: value})):
        answer = await create(hooks)
    assert f"validating webhook may not return response.{field}" in answer.json["message"]


async def test_the_older_review_is_spoken_where_it_is_liked_best_and_held_to_less(hooks: AdmissionWebhooks) -> None:
    def respond(request: Json) -> Json:
        return {"uid": "any", "allowed": True, "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEvYiIsInZhbHVlIjoiYyJ9XQ=="}

    older = hooks.webhook("m", respond, admissionReviewVersions=["v9", "v1beta1", "v1"])
    async with hooks.configured("mutating", older):
        assert (await create(hooks)).json["data"] == {"a": "b", "b": "c"}


async def test_a_webhook_with_another_ca_is_not_believed(hooks: AdmissionWebhooks) -> None:
    import base64

    config = {**hooks.server.by_url("/v"), "caBundle": base64.b64encode(TestCA().certificate).decode()}
    async with hooks.configured("validating", hooks.webhook("v", clientConfig=config)) as calls:
        answer = await create(hooks)
    assert "x509: certificate signed by unknown authority" in answer.json["message"]
    assert not calls


async def test_a_slow_webhook_is_not_waited_for_longer_than_it_may_take(hooks: AdmissionWebhooks) -> None:
    async def slowly() -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    slow: Respond = lambda _: slowly()  # noqa: E731
    fails = hooks.webhook("slow", slow, timeoutSeconds=1)
    opens = hooks.webhook("slower", slow, timeoutSeconds=1, failurePolicy="Ignore")
    async with hooks.configured("validating", fails, opens):
        answer = await asyncio.wait_for(create(hooks), PATIENCE)
    assert answer.json["message"].startswith(
        'Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post "https://'
    )
    assert answer.json["message"].endswith('/slow?timeout=1s": context deadline exceeded')


async def test_who_asks_for_it_is_called_again_after_a_later_change_and_only_then(hooks: AdmissionWebhooks) -> None:
    again: dict[str, Any] = {"reinvocationPolicy": "IfNeeded"}
    label = {"op": "add", "path": "/data/b", "value": "c"}
    eager = hooks.webhook("eager", **again)
    never = hooks.webhook("never")
    changes = hooks.webhook("changes", patching(label), **again)
    last = hooks.webhook("last", **again)
    async with hooks.configured("mutating", eager, never, changes, last):
        await create(hooks)
    assert hooks.called == ["eager", "never", "changes", "last", "eager"]
    assert hooks.calls[-1][1]["object"]["data"] == {"a": "b", "b": "c"}


async def test_nobody_is_called_again_when_nothing_changed(hooks: AdmissionWebhooks) -> None:
    same = patching({"op": "replace", "path": "/data/a", "value": "b"})
    eager = hooks.webhook("eager", reinvocationPolicy="IfNeeded")
    async with hooks.configured("mutating", eager, hooks.webhook("same", same)):
        await create(hooks)
    assert hooks.called == ["eager", "same"]


async def test_other_plugins_see_what_webhooks_changed(hooks: AdmissionWebhooks) -> None:
    """The second round: the pod's new class is looked up although its priority was set before."""
    pods = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    change = [
        {"op": "add", "path": "/spec/priorityClassName", "value": "system-node-critical"},
        {"op": "remove", "path": "/spec/priority"},
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    async with hooks.configured("mutating", hooks.webhook("m", patching(*change), rules=pods)):
        answer = await hooks.api.request("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", pod)
    assert answer.json["spec"]["priority"] == 2000001000
