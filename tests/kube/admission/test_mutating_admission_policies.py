"""Mutating admission policies on a whole server: how they change objects, in which order, and what they cannot do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from admission_policies import apply, binding, policy, until
from custom_resources import WIDGETS, definition, install, widget
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

DRY = f"{CONFIG_MAPS}?dryRun=All"
PODS = "/api/v1/namespaces/default/pods?dryRun=All"
POD_RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


def configuration(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def mutating(name: str, *mutations: Json, rules: list[Json] | None = None, **spec: Any) -> list[Json]:
    rules = rules or [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    said = {"reinvocationPolicy": "Never", "mutations": list(mutations), **spec}
    return [policy(name, how="Mutating", rules=rules, **said), binding(name, how="Mutating")]


def config_map(name: str = "a", **fields: Any) -> Json:
    meta = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **fields}


def pod() -> Json:
    containers = [{"name": "web", "image": "web:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}


async def changed(server: API, target: str, obj: Json) -> Answer:
    """The answer once it is another than without policies."""

    def differs(answer: Answer) -> bool:
        made = answer.json
        return answer.status >= 400 or made.get("data") != obj.get("data") or "labels" in made["metadata"]

    return await until(lambda: server.request("POST", target, obj), differs)


async def test_a_configuration_is_merged_by_the_keys_of_lists(server: API) -> None:
    expression = """Object{
      metadata: Object.metadata{labels: {'by': request.userInfo.username}},
      spec: Object.spec{
        initContainers: [Object.spec.initContainers{name: 'mesh', image: 'mesh:1', restartPolicy: 'Always'}],
        containers: object.spec.containers.map(c, Object.spec.containers{
          name: c.name, env: [Object.spec.containers.env{name: 'A', value: 'b'}]})}}"""
    await apply(server, *mutating("p", configuration(expression), rules=POD_RULES))
    answer = await changed(server, PODS, pod())
    assert answer.status == 201, answer.body
    spec = answer.json["spec"]
    assert answer.json["metadata"]["labels"] == {"by": "pilothouse-testing"}
    assert [(each["name"], each["image"], each["env"]) for each in spec["containers"]] == [
        ("web", "web:1", [{"name": "A", "value": "b"}])
    ]
    # What a policy adds gets its defaults.
    assert spec["initContainers"][0]["terminationMessagePath"] == "/dev/termination-log"


async def test_a_json_patch_may_have_objects_conditions_and_tests(server: API) -> None:
    expression = """
      (has(object.data) ? [] : [JSONPatch{op: 'add', path: '/data', value: {}}]) + [
        JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b'), value: 'c'},
        JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{x: 'y'}}]"""
    untrue = "[JSONPatch{op: 'test', path: '/data/k', value: 'other'}, JSONPatch{op: 'remove', path: '/data/k'}]"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    await apply(server, *mutating("p", json_patch(expression), json_patch(untrue), rules=rules))
    answer = await changed(server, DRY, config_map(data={"k": "v"}))
    # '/' cannot be in a key, and it is the validation after all policies that says so.
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert 'Invalid value: "a/b"' in answer.json["message"]


async def test_policies_are_called_again_only_where_they_ask_for_it(server: API) -> None:
    count = "string(int(object.?data.?{}.orValue('0')) + 1)"
    for name in ("a-once", "b-again"):
        key = name.replace("-", "")
        expression = f"Object{{data: {{'{key}': {count.format(key)}}}}}"
        policy = "IfNeeded" if name == "b-again" else "Never"
        await apply(server, *mutating(name, configuration(expression), reinvocationPolicy=policy))
    answer = await until(
        lambda: server.request("POST", DRY, config_map()), lambda answer: "bagain" in (answer.json.get("data") or {})
    )
    assert answer.json["data"] == {"aonce": "1", "bagain": "2"}


async def test_custom_resources_are_changed_by_their_schemas(server: API) -> None:
    await install(server, definition())
    rules = [{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}]
    mutation = configuration("Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{size: 7}}")
    await apply(server, *mutating("p", mutation, rules=rules))
    answer = await changed(server, f"{WIDGETS}?dryRun=All", widget(spec={"color": "red"}))
    assert answer.status == 201, answer.body
    assert answer.json["spec"] == {"color": "red", "size": 7}


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (configuration("Object{spec: Object.spec{nope: 1}}"), "failed to convert patch object to typed object: "),
        (
            configuration("Object{spec: Object.metadata{name: 'x'}}"),
            'type mismatch: unexpected type name "Object.metadata", expected "Object.spec", '
            "which matches field name path from root Object type",
        ),
        (
            configuration("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'web', args: ['x']}]}}"),
            "error applying patch: invalid ApplyConfiguration: "
            "may not mutate atomic arrays, maps or structs: .spec.containers[0].args",
        ),
        (json_patch("[JSONPatch{op: 'remove', path: '/spec/none'}]"), "JSON Patch: "),
        (json_patch("[JSONPatch{op: 'remove', path: object.spec.none}]"), "no such key: none"),
    ],
)
async def test_what_a_policy_cannot_do_is_refused(server: API, mutation: Json, why: str) -> None:
    await apply(server, *mutating("p", mutation, rules=POD_RULES))
    answer = await until(lambda: server.request("POST", PODS, pod()), lambda answer: answer.status >= 400)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert answer.json["message"].startswith("policy 'p' with binding 'p' denied request: ")
    assert why in answer.json["message"]
    assert answer.json["details"]["causes"] == [{"message": answer.json["message"]}]


async def test_a_patch_to_a_field_that_nobody_knows_is_an_internal_error(server: API) -> None:
    mutation = json_patch("[JSONPatch{op: 'add', path: '/spec/nope', value: 1}]")
    await apply(server, *mutating("p", mutation, rules=POD_RULES))
    answer = await until(lambda: server.request("POST", PODS, pod()), lambda answer: answer.status >= 400)
    assert answer.status == 500
    assert answer.json["message"] == 'Internal error occurred: strict decoding error: unknown field "spec.nope"'


async def test_a_failing_policy_may_be_ignored_and_the_next_one_still_runs(server: API) -> None:
    broken = configuration("Object{data: {'a': object.data.none}}")
    await apply(server, *mutating("broken", broken, failurePolicy="Ignore"))
    await apply(server, *mutating("good", configuration("Object{data: {'good': 'yes'}}")))
    answer = await changed(server, DRY, config_map(data={"k": "v"}))
    assert answer.json["data"] == {"k": "v", "good": "yes"}
