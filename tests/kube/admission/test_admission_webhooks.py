"""Admission webhooks on real TLS sockets: what they are asked, what their answers do, and what happens without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from admission_webhooks import AdmissionWebhooks, Respond, admission_webhooks, allow, patching
from aiohttp import web
from certificates_fixture import TestCA
from in_process import CONFIG_MAPS, Answer, in_process_server
from prometheus_client import generate_latest

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hooks(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AdmissionWebhooks]:
    folder: Path = tmp_path_factory.mktemp("store")
    async with in_process_server(folder) as api, admission_webhooks(api) as hooks:
        yield hooks


def config_map(name: str = "one", **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


async def create(hooks: AdmissionWebhooks, obj: Json | None = None, query: str = "?dryRun=All") -> Answer:
    return await hooks.api("POST", CONFIG_MAPS + query, obj or config_map())


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
        "userInfo": {"username": "tester", "groups": ["system:masters"]},
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
    await hooks.api.create("kept")
    async with hooks.configured("validating", hooks.webhook("v")) as calls:
        await hooks.api("PUT", f"{CONFIG_MAPS}/kept", config_map("kept"))
        patch: Json = {"data": {"c": "d"}}
        await hooks.api("PATCH", f"{CONFIG_MAPS}/kept", patch, media="application/merge-patch+json")
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
        apply = {"media": "application/apply-patch+yaml"}
        await hooks.api("PATCH", f"{CONFIG_MAPS}/applied?fieldManager=me&force=true", applied, **apply)
        await hooks.api("DELETE", f"{CONFIG_MAPS}/kept", {"gracePeriodSeconds": 3})
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
        await hooks.api.create(name, metadata={"labels": {"all": "of-them"}})
    async with hooks.configured("validating", hooks.webhook("v")) as calls:
        await hooks.api("DELETE", f"{CONFIG_MAPS}?labelSelector=all=of-them")
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
        answer = await hooks.api("POST", "/api/v1/namespaces/default/services?dryRun=All", service)
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


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ({"path": "/metadata/namespace", "value": "other"}, 400, "does not match the namespace sent on the request"),
        ({"path": "/metadata/resourceVersion", "value": "1"}, 500, "resourceVersion should not be set on objects"),
    ],
)
async def test_a_changed_object_cannot_escape_its_request(
    hooks: AdmissionWebhooks, operation: Json, code: int, message: str
) -> None:
    async with hooks.configured("mutating", hooks.webhook("m", patching({"op": "add", **operation}))):
        answer = await create(hooks)
    assert answer.status == code
    assert message in answer.json["message"]


async def test_an_object_that_lost_its_kind_still_is_what_it_was(hooks: AdmissionWebhooks) -> None:
    gone = patching({"op": "remove", "path": "/kind"}, {"op": "remove", "path": "/apiVersion"})
    async with hooks.configured("mutating", hooks.webhook("m", gone)):
        assert (await create(hooks)).json["kind"] == "ConfigMap"


async def test_what_is_deleted_cannot_be_changed(hooks: AdmissionWebhooks) -> None:
    await hooks.api.create("stays")
    change = patching({"op": "add", "path": "/data/b", "value": "c"})
    async with hooks.configured("mutating", hooks.webhook("m", change)):
        answer = await hooks.api("DELETE", f"{CONFIG_MAPS}/stays")
    assert answer.json["message"] == (
        'Internal error occurred: admission webhook "m.example.com" attempted to modify the object, '
        "which is not supported for this operation"
    )
    assert (await hooks.api("GET", f"{CONFIG_MAPS}/stays")).status == 200


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
        answer = await asyncio.wait_for(create(hooks), 10)
    assert answer.json["message"].startswith(
        'Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post "https://'
    )
    assert answer.json["message"].endswith('/slow?timeout=1s": context deadline exceeded')


async def test_validating_webhooks_are_asked_at_the_same_time_and_the_first_refusal_counts(
    hooks: AdmissionWebhooks,
) -> None:
    both = asyncio.Barrier(2)

    async def meet(message: str, uid: str) -> web.StreamResponse:
        async with asyncio.timeout(10):
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


async def test_who_asks_for_it_is_called_again_after_a_later_change_and_only_then(hooks: AdmissionWebhooks) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
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
        answer = await hooks.api("POST", "/api/v1/namespaces/kube-system/pods?dryRun=All", pod)
    assert answer.json["spec"]["priority"] == 2000001000


CONDITION = {"name": "only-b", "expression": "object.data.a == 'b' && request.userInfo.username == 'tester'"}


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
        assert (await hooks.api("POST", path, event)).json["message"] == "said"
    async with hooks.configured("mutating", hooks.webhook("m", note, rules=rules)) as calls:
        assert (await hooks.api("POST", path, event)).json["message"] == "changed"
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
    assert f'request_total{{code="418",{labels},rejected="true",type="validating"}} 1.0' in shown
    assert f'error_type="no_error",{labels},rejection_code="418",type="validating"}} 1.0' in shown


async def test_allowing_says_nothing(hooks: AdmissionWebhooks) -> None:
    async with hooks.configured("validating", hooks.webhook("v", allow)):
        answer = await create(hooks)
    assert answer.status == 201
    assert "warning" not in answer.headers
