"""FlowSchemas: defaults, validation, and the ones that nobody may change."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.apiserver.flowcontrol.mandatory import MANDATORY_SCHEMAS
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.kube.flowcontrol.ensurer import SUGGESTED_SCHEMAS
from pilothouse.kube.flowcontrol.flow_schemas import FLOW_SCHEMAS, FlowSchemaStatusStrategy, FlowSchemaStrategy
from pilothouse.machinery.objects import Json

STRATEGY = FlowSchemaStrategy()
_RULE: Json = {
    "subjects": [{"kind": "User", "user": {"name": "jane"}}],
    "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}],
}


def flow_schema(name: str = "mine", **spec: Any) -> Json:
    whole = {"priorityLevelConfiguration": {"name": "workload-low"}, "rules": [_RULE], **spec}
    obj = {"metadata": {"name": name}, "spec": deepcopy(whole), "status": {}}
    STRATEGY.default(obj)
    return obj


def with_rule(**changes: Any) -> Json:
    return flow_schema(rules=[{**_RULE, **changes}])


def complaints(obj: Json) -> list[str]:
    return [str(error) for error in STRATEGY.validate(obj)]


def test_a_schema_without_a_precedence_gets_1000() -> None:
    assert flow_schema()["spec"]["matchingPrecedence"] == 1000
    assert complaints(flow_schema()) == []


@pytest.mark.parametrize("name", [*MANDATORY_SCHEMAS, *SUGGESTED_SCHEMAS])
def test_the_servers_own_schemas_are_valid_and_complete(name: str) -> None:
    spec = {**MANDATORY_SCHEMAS, **SUGGESTED_SCHEMAS}[name]
    obj = {"metadata": {"name": name}, "spec": deepcopy(spec), "status": {}}
    STRATEGY.default(obj)
    assert obj["spec"] == spec
    assert complaints(obj) == []


def test_a_mandatory_schema_must_say_what_the_server_says() -> None:
    spec = deepcopy(MANDATORY_SCHEMAS["catch-all"]) | {"matchingPrecedence": 9999}
    (complaint,) = complaints({"metadata": {"name": "catch-all"}, "spec": spec, "status": {}})
    assert complaint.startswith('spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"catch-all"},')
    assert '"Group":{"Name":"system:unauthenticated"},"ServiceAccount":null}' in complaint
    assert complaint.endswith("spec of 'catch-all' must equal the fixed value")


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            flow_schema(matchingPrecedence=-1),
            ["spec.matchingPrecedence: Invalid value: -1: must be a positive value"],
        ),
        (
            flow_schema(matchingPrecedence=10001),
            ["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
        ),
        (
            flow_schema(matchingPrecedence=1),
            ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
        ),
        (
            flow_schema(distinguisherMethod={"type": "ByMoon"}),
            [
                'spec.distinguisherMethod.type: Unsupported value: {"Type":"ByMoon"}: '
                'supported values: "ByNamespace", "ByUser"'
            ],
        ),
        (
            flow_schema(priorityLevelConfiguration={}),
            ["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
        ),
        (
            with_rule(subjects=[]),
            ["spec.rules[0].subjects: Required value: subjects must contain at least one value"],
        ),
        (
            with_rule(subjects=[{"kind": "Robot"}]),
            [
                'spec.rules[0].subjects[0].kind: Unsupported value: "Robot": '
                'supported values: "Group", "ServiceAccount", "User"'
            ],
        ),
        (
            with_rule(subjects=[{"kind": "ServiceAccount", "serviceAccount": {}, "group": {"name": "g"}}]),
            [
                "spec.rules[0].subjects[0].serviceAccount.name: Required value",
                "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: "
                "must specify namespace for service account",
                "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
            ],
        ),
        (
            with_rule(subjects=[{"kind": "Group", "user": {"name": "u"}}]),
            [
                "spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'",
                "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
            ],
        ),
        (
            with_rule(resourceRules=[]),
            ["spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"],
        ),
        (
            with_rule(resourceRules=[{"verbs": ["*", "get"], "apiGroups": ["*", ""], "resources": ["*", "pods"]}]),
            [
                "spec.rules[0].resourceRules[0].verbs: Invalid value: "
                '["*","get"]: if \'*\' is present, must not specify other verbs',
                "spec.rules[0].resourceRules[0].apiGroups: Invalid value: "
                '["*",""]: if \'*\' is present, must not specify other api groups',
                "spec.rules[0].resourceRules[0].resources: Invalid value: "
                '["*","pods"]: if \'*\' is present, must not specify other resources',
                "spec.rules[0].resourceRules[0].namespaces: Required value: "
                "resource rules that are not cluster scoped must supply at least one namespace",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_schema_is_said_in_order(obj: Json, expected: list[str]) -> None:
    assert complaints(obj) == expected


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must not be empty"),
        ("/", ""),
        ("/healthz", ""),
        ("/healthz/*", ""),
        ("healthz", "must start with slash"),
        ("/a b", "must not contain white-space"),
        ("/a//b", "must not contain double slash"),
        ("/a/*/b", "wildcard can only do suffix matching"),
        ("/a*", "wildcard can only do suffix matching"),
        ("/*/*", "wildcard can only do suffix matching"),
    ],
)
def test_a_path_may_only_end_with_a_wildcard(url: str, problem: str) -> None:
    found = complaints(with_rule(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": [url]}]))
    assert [text.rpartition(": ")[2] for text in found] == ([problem] if problem else [])


def test_a_status_write_changes_neither_metadata_nor_spec() -> None:
    old = flow_schema() | {"metadata": {"name": "mine", "labels": {"a": "b"}, "generation": 4}}
    new = flow_schema(matchingPrecedence=7) | {
        "metadata": {"name": "mine", "labels": {"x": "y"}, "managedFields": [{"manager": "m"}]},
        "status": {"conditions": [{"type": "Dangling", "status": "True"}]},
    }
    strategy = FlowSchemaStatusStrategy()
    strategy.prepare_for_update(new, old)
    assert new["metadata"] == old["metadata"] | {"managedFields": [{"manager": "m"}]}
    assert new["spec"] == old["spec"]
    assert new["status"]["conditions"][0]["status"] == "True"


def test_conditions_need_a_type_each_of_its_own() -> None:
    obj = flow_schema() | {"status": {"conditions": [{"type": "A"}, {"type": "A"}, {}]}}
    assert [str(error) for error in FlowSchemaStatusStrategy().validate_update(obj, obj)] == [
        'status.conditions[1].type: Duplicate value: "A"',
        "status.conditions[2].type: Required value",
    ]


def test_a_new_spec_is_a_new_generation() -> None:
    old = flow_schema() | {"metadata": {"name": "mine", "generation": 2}}
    same, other = flow_schema(), flow_schema(matchingPrecedence=5)
    for obj, generation in ((same, 2), (other, 3)):
        obj["metadata"]["generation"] = 2
        STRATEGY.prepare_for_update(obj, old)
        assert obj["metadata"]["generation"] == generation


def cells(resource: Resource, obj: Json) -> list[Any]:
    return [column.cell(obj) for column in resource.columns if column.name not in ("Name", "Age")]


def test_the_table_tells_whether_the_level_is_missing() -> None:
    assert cells(FLOW_SCHEMAS, flow_schema()) == ["workload-low", 1000, "<none>", "?"]
    dangling = flow_schema(distinguisherMethod={"type": "ByUser"}) | {
        "status": {"conditions": [{"type": "Dangling", "status": "False"}]}
    }
    assert cells(FLOW_SCHEMAS, dangling) == ["workload-low", 1000, "ByUser", "False"]
