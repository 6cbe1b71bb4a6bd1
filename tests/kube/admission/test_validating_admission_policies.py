"""Validating admission policies on a whole server: what they see, what they refuse, and in which words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from admission_policies import apply, binding, policy, until
from custom_resources import WIDGETS, definition, install, widget
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

DRY = f"{CONFIG_MAPS}?dryRun=All"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


def config_map(name: str = "a", **fields: Any) -> Json:
    meta = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **fields}


async def refused(server: API, obj: Json, target: str = DRY) -> Answer:
    return await until(lambda: server.request("POST", target, obj), lambda answer: answer.status >= 400)


async def test_a_refusal_says_who_refused_what_and_why(server: API) -> None:
    validations = [{"expression": "object.metadata.name == 'b'", "message": "not b", "reason": "Forbidden"}]
    await apply(server, policy("p", validations=validations), binding("p"))
    answer = await refused(server, config_map())
    why = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not b"
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "a" is forbidden: {why}',
        "reason": "Forbidden",
        "details": {"name": "a", "kind": "configmaps", "causes": [{"message": why}]},
        "code": 403,
    }
    assert (await server.request("POST", DRY, config_map("b"))).status == 201


async def test_variables_messages_conditions_and_the_request_are_seen(server: API) -> None:
    await apply(
        server,
        policy(
            "p",
            matchConditions=[{"name": "not-mine", "expression": "object.metadata.name != 'mine'"}],
            variables=[
                {"name": "size", "expression": "size(object.data)"},
                {"name": "twice", "expression": "variables.size * 2"},
                {"name": "broken", "expression": "object.missing"},
            ],
            validations=[
                {
                    "expression": "variables.twice < 4",
                    "messageExpression": "'%d of %s'.format([variables.size, request.userInfo.username])",
                },
                {"expression": "namespaceObject.metadata.name == 'default' && !has(request.subResource)"},
            ],
        ),
        binding("p"),
    )
    answer = await refused(server, config_map(data={"a": "1", "b": "2"}))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert answer.json["message"].endswith("denied request: 2 of pilothouse-testing")
    assert (await server.request("POST", DRY, config_map(data={"a": "1"}))).status == 201
    assert (await server.request("POST", DRY, config_map("mine"))).status == 201
    failed = await server.request("POST", DRY, config_map())
    assert failed.json["message"].endswith(
        "denied request: expression 'variables.twice < 4' resulted in error: "
        'composited variable "twice" fails to evaluate: composited variable "size" fails to evaluate: '
        "no such key: data"
    )


async def test_updates_and_deletes_are_seen_with_what_was(server: API) -> None:
    validations = [
        {"expression": "request.operation != 'UPDATE' || oldObject.data.v == object.data.v"},
        {"expression": "request.operation != 'DELETE' || !('keep' in oldObject.data)", "message": "kept"},
    ]
    await create_config_map(server, "a", data={"v": "1", "keep": "y"})
    await apply(server, policy("p", validations=validations), binding("p"))
    merge = "application/merge-patch+json"
    changed = await until(
        lambda: server.request("PATCH", f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"v": "2"}}, media=merge),
        lambda answer: answer.status >= 400,
    )
    assert changed.json["message"].endswith(f"failed expression: {validations[0]['expression']}")
    assert (await server.request("DELETE", f"{CONFIG_MAPS}/a")).json["message"].endswith("denied request: kept")
    gone = await server.request("DELETE", CONFIG_MAPS)
    assert gone.json["message"].endswith("denied request: kept")


async def test_warn_and_audit_let_the_write_pass_and_errors_follow_the_failure_policy(server: API) -> None:
    wrong = [{"expression": "object.data.x == 'y'", "message": "no y"}]
    await apply(
        server,
        policy("ignored", failurePolicy="Ignore", validations=wrong),
        policy("warned", validations=wrong),
        binding("ignored"),
        binding("warned", validationActions=["Warn", "Audit"]),
    )
    answer = await until(
        lambda: server.request("POST", DRY, config_map(data={"a": "b"})), lambda answer: "warning" in answer.headers
    )
    assert answer.status == 201
    assert answer.headers["warning"] == (
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'warned' with binding 'warned': "
        "expression 'object.data.x == 'y'' resulted in error: no such key: x\""
    )
    denied = await server.request("POST", DRY, config_map(data={"x": "n"}))
    assert denied.json["message"].endswith(
        "ValidatingAdmissionPolicy 'ignored' with binding 'ignored' denied request: no y"
    )


async def test_parameters_may_be_custom_resources_found_by_name_or_by_labels(server: API) -> None:
    await install(server, definition())
    kind = {"apiVersion": definition()["spec"]["group"] + "/v1", "kind": "Widget"}
    validations = [
        {"expression": "size(object.data) <= params.spec.size", "messageExpression": "'' + params.metadata.name"}
    ]
    await apply(
        server,
        policy("p", paramKind=kind, validations=validations),
        binding("p", paramRef={"name": "limit", "parameterNotFoundAction": "Deny"}),
    )
    missing = await refused(server, config_map(data={}))
    assert missing.json["message"].endswith(
        "denied request: failed to configure binding: "
        "no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    labels = {"labels": {"kind": "limit"}}
    for name, size in (("limit", 1), ("other", 3)):
        made = await server.request(
            "POST", WIDGETS, {**widget(name, spec={"size": size}), "metadata": {"name": name, **labels}}
        )
        assert made.status == 201
    two = {"a": "1", "b": "2"}
    assert (await server.request("POST", DRY, config_map(data=two))).json["message"].endswith("denied request: limit")
    assert (await server.request("POST", DRY, config_map(data={"a": "1"}))).status == 201
    url = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/p"
    by_labels = {"name": None, "selector": {"matchLabels": {"kind": "limit"}}, "parameterNotFoundAction": "Allow"}
    patch = {"spec": {"paramRef": by_labels}}
    assert (await server.request("PATCH", url, patch, media="application/merge-patch+json")).status == 200
    many = {str(i): "x" for i in range(4)}
    await until(
        lambda: server.request("POST", DRY, config_map(data=many)),
        lambda answer: "denied request: limit" in str(answer.json),
    )


async def test_custom_resources_and_other_versions_are_matched(server: API) -> None:
    await install(server, definition())
    group = definition()["spec"]["group"]
    rules = [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}]
    validations = [{"expression": "object.spec.size < 5", "message": "too large"}]
    await apply(server, policy("p", rules=rules, validations=validations), binding("p"))
    answer = await refused(server, widget(spec={"size": 7}), f"{WIDGETS}?dryRun=All")
    assert answer.json["message"].endswith("denied request: too large")
    assert answer.json["details"]["group"] == group


async def test_an_unknown_parameter_kind_is_a_wrong_policy(server: API) -> None:
    kind = {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}
    await apply(server, policy("p", paramKind=kind, validations=[{"expression": "true"}]), binding("p"))
    answer = await refused(server, config_map())
    assert answer.json["message"] == (
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: "
        "failed to find resource referenced by paramKind: 'nobody.example.com/v1, Kind=Nothing'"
    )


async def test_no_policy_decides_about_policies(server: API) -> None:
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    await apply(server, policy("p", rules=rules, validations=[{"expression": "false"}]), binding("p"))
    await refused(server, config_map())
    url = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/p"
    assert (await server.request("DELETE", url)).status == 200


async def test_expressions_may_ask_what_the_user_may_do(server: API) -> None:
    expression = "authorizer.group('').resource('secrets').namespace('x').check('get').allowed() && false"
    await apply(server, policy("p", validations=[{"expression": expression, "message": "asked"}]), binding("p"))
    assert (await refused(server, config_map())).json["message"].endswith("denied request: asked")
