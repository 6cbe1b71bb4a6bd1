"""Admission webhooks on real TLS sockets: what they are asked, what their answers do, and what happens without one."""

from __future__ import annotations

import asyncio

import pytest
from admission_webhooks import AdmissionWebhooks, Respond, allow, config_map, create, patching
from aiohttp import web
from patience import PATIENCE
from prometheus_client import generate_latest
from whole_server import CONFIG_MAPS, create_config_map

from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_webhook_is_told_what_is_asked_by_whom(hooks: AdmissionWebhooks) -> None:
    async with hooks.configured("validating", hooks.webhook("v")) as calls:
        assert (await create(hooks, query="?dryRun=All&fieldManager=me")).status == 201
    [(_, request)] = calls
    obj = request.pop("object")
    assert (obj["kind"], obj["apiVersion"], obj["data"]) == ("ConfigMap", "v1", {"a": "b"})
    assert obj["metadata"]["uid"]
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1"}
    assert request.pop("uid")
    assert request == {
        "kind": kind,
        "requestKind": kind,
        "resource": {**resource, "resource": "configmaps"},
        "requestResource": {**resource, "resource": "configmaps"},
        "name": "one",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {
            "username": "pilothouse-testing",
            "uid": "pilothouse-testing",
            "groups": ["system:masters", "system:authenticated"],
        },
        "oldObject": None,
        "dryRun": True,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "dryRun": ["All"],
            "fieldManager": "me",
        },
    }


async def test_updates_and_deletes_show_what_there_was(hooks: AdmissionWebhooks) -> None:
    await create_config_map(hooks.api, "kept")
    async with hooks.configured("validating", hooks.webhook("v")) as calls:
        await hooks.api.request("PUT", f"{CONFIG_MAPS}/kept", config_map("kept"))
        patch: Json = {"data": {"c": "d"}}
        await hooks.api.request("PATCH", f"{CONFIG_MAPS}/kept", patch, media="application/merge-patch+json")
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
        apply = {"media": "application/apply-patch+yaml"}
        await hooks.api.request("PATCH", f"{CONFIG_MAPS}/applied?fieldManager=me&force=true", applied, **apply)
        await hooks.api.request("DELETE", f"{CONFIG_MAPS}/kept", {"gracePeriodSeconds": 3})
    seen = [
        (each["operation"], bool(each["object"]), bool(each["oldObject"]), each["options"]["kind"]) for _, each in calls
    ]
    assert seen == [
        ("UPDATE", True, True, "UpdateOptions"),
        ("UPDATE", True, True, "UpdateOptions"),
        ("CREATE", True, False, "CreateOptions"),
        ("DELETE", False, True, "DeleteOptions"),
    ]
    assert calls[2][1]["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert calls[3][1]["options"]["gracePeriodSeconds"] == 3


async def test_each_object_of_a_collection_is_asked_about(hooks: AdmissionWebhooks) -> None:
    for name in ("a1", "a2"):
        await create_config_map(hooks.api, name, metadata={"labels": {"all": "of-them"}})
    async with hooks.configured("validating", hooks.webhook("v")) as calls:
        await hooks.api.request("DELETE", f"{CONFIG_MAPS}?labelSelector=all=of-them")
    assert [(each["operation"], each["oldObject"]["metadata"]["name"]) for _, each in calls] == [
        ("DELETE", "a1"),
        ("DELETE", "a2"),
    ]
    assert not any("name" in each for _, each in calls), "the request names none"


@pytest.mark.parametrize("type", ["validating", "mutating"])
@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        ({"message": "not today"}, 400, None, ": not today"),
        ({"reason": "Forbidden", "code": 403}, 403, "Forbidden", ": Forbidden"),
        ({"reason": "Odd", "message": "m", "code": 499}, 499, "Odd", ": m"),
        ({"code": 200}, 400, None, " without explanation"),
        (None, 400, None, " without explanation"),
    ],
)
async def test_a_refusal_has_the_webhooks_words_and_code(
    hooks: AdmissionWebhooks, type: str, status: Json | None, code: int, reason: str | None, message: str
) -> None:
    respond: Respond = lambda _: {"allowed": False} | ({"status": status} if status else {})  # noqa: E731
    async with hooks.configured(type, hooks.webhook("no", respond, failurePolicy="Ignore")):
        answer = await create(hooks)
    assert answer.status == code
    assert answer.json.get("reason") == reason
    assert answer.json["message"] == f'admission webhook "no.example.com" denied the request{message}'


async def test_validating_webhooks_are_asked_at_the_same_time_and_the_first_refusal_counts(
    hooks: AdmissionWebhooks,
) -> None:
    both = asyncio.Barrier(2)

    async def meet(message: str, uid: str) -> web.StreamResponse:
        async with asyncio.timeout(PATIENCE):
            await both.wait()
        response = {"uid": uid, "allowed": False, "status": {"message": message}}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        return web.json_response(review)

    one = hooks.webhook("one", lambda request: meet("one", request["uid"]))
    two = hooks.webhook("two", lambda request: meet("two", request["uid"]))
    async with hooks.configured("validating", one, two):
        answer = await create(hooks)
    assert answer.json["message"].endswith("denied the request: one")


async def test_warnings_reach_the_client(hooks: AdmissionWebhooks) -> None:
    respond: Respond = lambda _: {"allowed": True, "warnings": ["mind the gap"]}  # noqa: E731
    async with hooks.configured("validating", hooks.webhook("v", respond)):
        answer = await create(hooks)
    assert answer.headers["warning"] == '299 - "mind the gap"'


CONDITION = {
    "name": "only-b",
    "expression": "object.data.a == 'b' && request.userInfo.username == 'pilothouse-testing'",
}


async def test_match_conditions_decide_whether_a_webhook_is_called(hooks: AdmissionWebhooks) -> None:
    refuses: Respond = lambda _: {"allowed": False}  # noqa: E731
    async with hooks.configured("validating", hooks.webhook("v", refuses, matchConditions=[CONDITION])):
        assert (await create(hooks)).status == 400
        assert (await create(hooks, {**config_map(), "data": {"a": "c"}})).status == 201


async def test_a_match_condition_without_an_answer_follows_the_failure_policy(hooks: AdmissionWebhooks) -> None:
    failing = hooks.webhook("v", matchConditions=[{"name": "c", "expression": "object.data.z == 'b'"}])
    async with hooks.configured("validating", failing) as calls:
        answer = await create(hooks)
        assert answer.status == 403
        assert answer.json["message"] == (
            "configmaps \"one\" is forbidden: expression 'object.data.z == 'b'' resulted in error: no such key: z"
        )
        assert not calls
    async with hooks.configured("validating", {**failing, "failurePolicy": "Ignore"}) as calls:
        assert (await create(hooks)).status == 201
        assert not calls


async def test_webhooks_have_no_say_in_what_configures_them(hooks: AdmissionWebhooks) -> None:
    everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
    refuses: Respond = lambda _: {"allowed": False}  # noqa: E731
    async with hooks.configured("validating", hooks.webhook("v", refuses, rules=everything)):
        assert (await create(hooks)).status == 400
    assert (await create(hooks)).status == 201, "the configuration could be deleted"


async def test_an_event_is_shown_in_the_group_that_the_rule_names(hooks: AdmissionWebhooks) -> None:
    rules = [{"operations": ["*"], "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"]}]
    note = patching({"op": "replace", "path": "/note", "value": "changed"})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"namespace": "default"},
        "message": "said",
    }
    path = "/api/v1/namespaces/default/events?dryRun=All"
    exact = hooks.webhook("m", note, rules=rules, matchPolicy="Exact")
    async with hooks.configured("mutating", exact):
        assert (await hooks.api.request("POST", path, event)).json["message"] == "said"
    async with hooks.configured("mutating", hooks.webhook("m", note, rules=rules)) as calls:
        assert (await hooks.api.request("POST", path, event)).json["message"] == "changed"
    [(_, request)] = calls
    assert request["object"]["note"] == "said"
    assert request["resource"] == {"group": "events.k8s.io", "version": "v1", "resource": "events"}
    assert request["requestResource"] == {"group": "", "version": "v1", "resource": "events"}


async def test_calls_are_counted_under_upstreams_names(hooks: AdmissionWebhooks) -> None:
    refuses: Respond = lambda _: {"allowed": False, "status": {"code": 418}}  # noqa: E731
    async with hooks.configured("validating", hooks.webhook("teapot", refuses)):
        await create(hooks)
    shown = generate_latest(REGISTRY).decode()
    labels = 'name="teapot.example.com",operation="CREATE"'
    assert f'request_total{{code="418",{labels},rejected="true",type="validating"}} 1' in shown
    assert f'error_type="no_error",{labels},rejection_code="418",type="validating"}} 1' in shown


async def test_allowing_says_nothing(hooks: AdmissionWebhooks) -> None:
    async with hooks.configured("validating", hooks.webhook("v", allow)):
        answer = await create(hooks)
    assert answer.status == 201
    assert "warning" not in answer.headers


async def test_a_webhook_sees_what_a_node_was(hooks: AdmissionWebhooks) -> None:
    """CVE-2021-25735: webhooks were shown an old node that the update had changed already."""
    node = {"metadata": {"name": "watched", "labels": {"zone": "a"}}, "spec": {"unschedulable": True}}
    assert (await hooks.api.request("POST", "/api/v1/nodes", node)).status == 201
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nodes", "nodes/status"]}
    merge, path = "application/merge-patch+json", "/api/v1/nodes/watched"
    change: Json = {"metadata": {"labels": {"zone": "b"}}, "spec": {"unschedulable": None, "podCIDR": "10.0.0.0/24"}}
    taint: Json = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    ready: Json = {"status": {"conditions": [{"type": "Ready", "status": "False"}], "capacity": {"cpu": "4"}}}
    async with hooks.configured("validating", hooks.webhook("v", rules=[rule])) as calls:
        for target, patch in ((path, change), (path, taint), (f"{path}/status", ready)):
            before = (await hooks.api.request("GET", path)).json
            assert (await hooks.api.request("PATCH", target, patch, media=merge)).status == 200
            old = calls[-1][1]["oldObject"]
            assert [old[part] for part in ("metadata", "spec", "status")] == [
                before[part] for part in ("metadata", "spec", "status")
            ]
            whole = (await hooks.api.request("GET", path)).json
            assert (await hooks.api.request("PUT", target, whole)).status == 200
            assert calls[-1][1]["oldObject"]["spec"] == whole["spec"]
    await hooks.api.request("DELETE", path)
