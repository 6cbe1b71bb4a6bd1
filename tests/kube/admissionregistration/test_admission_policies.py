"""Admission policies and their bindings: defaults, validation, status, cells."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.kube.admissionregistration.policies import (
    VALIDATING_ADMISSION_POLICIES,
    MutatingPolicyStrategy,
    ValidatingPolicyStatusStrategy,
    ValidatingPolicyStrategy,
)
from pilothouse.kube.admissionregistration.policy_bindings import (
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MutatingBindingStrategy,
    ValidatingBindingStrategy,
)
from pilothouse.kube.admissionregistration.strategy import AdmissionRegistrationStrategy
from pilothouse.machinery.objects import Json

VALIDATING, MUTATING = ValidatingPolicyStrategy(), MutatingPolicyStrategy()
RULE: Json = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
APPLY: Json = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}


def made(strategy: AdmissionRegistrationStrategy, spec: Json, status: Json | None = None) -> Json:
    obj = {"metadata": {"name": "mine", "generation": 1}, "spec": deepcopy(spec), "status": status or {}}
    strategy.default(obj)
    return obj


def complaints(strategy: AdmissionRegistrationStrategy, spec: Json) -> list[str]:
    return [str(error) for error in strategy.validate(made(strategy, spec))]


def policy(**changes: Any) -> Json:
    return {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "object.spec.x == 1"}],
        **changes,
    }


def mutating(**changes: Any) -> Json:
    constraints = {"resourceRules": [RULE]}
    return {"matchConstraints": constraints, "reinvocationPolicy": "Never", "mutations": [APPLY], **changes}


def test_a_policy_fails_closed_and_matches_equivalent_kinds_by_default() -> None:
    spec = made(VALIDATING, policy())["spec"]
    assert spec["failurePolicy"] == "Fail"
    assert spec["matchConstraints"] == {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{**RULE, "scope": "*"}],
    }
    assert complaints(VALIDATING, policy()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {},
            [
                "spec.matchConstraints: Required value",
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
            ],
        ),
        (
            policy(paramKind={"apiVersion": "a/b/c", "kind": "X_Y"}),
            [
                'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                'spec.paramKind.kind: Invalid value: "X_Y": may have mixed case, but should otherwise match: '
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
                "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
        (
            policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, validations=[{"expression": "params.x == 1"}]),
            [],
        ),
        (
            policy(validations=[{"expression": "params.x == 1"}]),
            [
                'spec.validations[0].expression: Invalid value: "params.x == 1": compilation failed: '
                "ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x == 1\n | ^"
            ],
        ),
        (
            policy(variables=[{"name": "a", "expression": "1"}], validations=[{"expression": "variables.a == 1"}]),
            [],
        ),
        (
            policy(variables=[{"name": "in", "expression": " "}, {"name": " ", "expression": "1 +"}])
            | {"validations": [{"expression": "true"}]},
            [
                'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
                "spec.variables[0].expression: Required value: expression is not specified",
                "spec.variables[1].name: Required value: name is not specified",
                'spec.variables[1].expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: '
                "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
                "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
            ],
        ),
        (
            policy(validations=[{"expression": "true", "messageExpression": " ", "message": " ", "reason": "No"}]),
            [
                'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
                'spec.validations[0].message: Invalid value: " ": must be non-empty if specified',
                'spec.validations[0].reason: Unsupported value: "No": '
                'supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
            ],
        ),
        (
            policy(auditAnnotations=[{"key": "a", "valueExpression": " 1 "}, {"key": "a", "valueExpression": "null"}]),
            [
                'spec.auditAnnotations[0].valueExpression: Invalid value: " 1 ": '
                "must evaluate to one of [string null_type] but got int",
                'spec.auditAnnotations[1].key: Duplicate value: "a"',
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_validating_policy_is_said_in_order(spec: Json, expected: list[str]) -> None:
    assert complaints(VALIDATING, spec) == expected


def test_match_conditions_that_did_not_change_are_not_checked_again() -> None:
    old = made(VALIDATING, policy(matchConditions=[{"name": "x", "expression": "1"}]))
    assert list(VALIDATING.validate_update(deepcopy(old), old)) == []
    changed = deepcopy(old)
    changed["spec"]["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert [error.field for error in VALIDATING.validate_update(changed, old)] == ["spec.matchConditions[0].expression"]


def test_status_and_spec_are_written_apart() -> None:
    old = made(VALIDATING, policy(), {"observedGeneration": 1})
    new = made(VALIDATING, policy(failurePolicy="Ignore"), {"observedGeneration": 2})
    through_spec, through_status = deepcopy(new), deepcopy(new)
    VALIDATING.prepare_for_update(through_spec, old)
    assert through_spec["status"] == {"observedGeneration": 1}
    assert through_spec["metadata"]["generation"] == 2
    ValidatingPolicyStatusStrategy().prepare_for_update(through_status, old)
    assert through_status["spec"]["failurePolicy"] == "Fail"
    assert through_status["status"] == {"observedGeneration": 2}


def test_a_type_checkers_warning_says_what_and_where() -> None:
    obj = made(VALIDATING, policy(), {"typeChecking": {"expressionWarnings": [{}]}})
    assert [error.field for error in ValidatingPolicyStatusStrategy().validate_update(obj, obj)] == [
        "status.typeChecking.expressionWarnings[0].warning",
        "status.typeChecking.expressionWarnings[0].fieldRef",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (mutating(), []),
        (
            {},
            [
                "spec.matchConstraints: Required value",
                "spec.mutations: Required value: mutations must contain at least one item",
                "spec.reinvocationPolicy: Required value",
            ],
        ),
        (
            mutating(matchConstraints={"resourceRules": [{**RULE, "operations": ["DELETE"]}]}),
            [
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": '
                'supported values: "*", "CONNECT", "CREATE", "UPDATE"'
            ],
        ),
        (
            mutating(mutations=[{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]),
            [
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                'spec.mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": '
                "must not be specified when patchType is JSONPatch",
            ],
        ),
        (
            mutating(mutations=[{"patchType": "JSONPatch", "jsonPatch": {"expression": "Object{}"}}]),
            [
                'spec.mutations[0].jsonPatch.expression: Invalid value: "Object{}": '
                "must evaluate to list(JSONPatch) but got Object"
            ],
        ),
        (
            mutating(mutations=[{"patchType": "Merge"}, {}, APPLY | {"applyConfiguration": {}}]),
            [
                'spec.mutations[0].patchType: Unsupported value: "Merge": '
                'supported values: "ApplyConfiguration", "JSONPatch"',
                "spec.mutations[1].patchType: Required value",
                "spec.mutations[2].applyConfiguration.expression: Required value",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_mutating_policy_is_said_in_order(spec: Json, expected: list[str]) -> None:
    assert complaints(MUTATING, spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"policyName": "p", "validationActions": ["Deny", "Audit"]}, []),
        (
            {"policyName": "p"},
            ["spec.validationActions: Required value: at least one validation action is required"],
        ),
        (
            {"policyName": "p", "validationActions": ["Audit"], "paramRef": {}},
            [
                "spec.paramRef: Required value: one of name or selector must be specified",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        ),
        (
            {
                "policyName": "p",
                "validationActions": ["Audit"],
                "paramRef": {"name": "a/b", "parameterNotFoundAction": "Shrug"},
            },
            [
                "spec.paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                'spec.paramRef.parameterNotFoundAction: Unsupported value: "Shrug": supported values: "Deny", "Allow"',
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_binding_is_said_in_order(spec: Json, expected: list[str]) -> None:
    assert complaints(ValidatingBindingStrategy(), spec) == expected


def test_a_mutating_binding_cannot_match_deletions() -> None:
    names = {"resourceNames": ["a", "a"], "operations": ["DELETE"]}
    spec = {"policyName": "p", "matchResources": {"resourceRules": [{**RULE, **names}]}}
    assert complaints(MutatingBindingStrategy(), spec) == [
        'spec.matchResources.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
        'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": '
        'supported values: "*", "CONNECT", "CREATE", "UPDATE"',
    ]


@pytest.mark.parametrize(
    ("reference", "cell"),
    [
        (None, "<unset>"),
        ({"name": "a"}, "*/a"),
        ({"name": "a", "namespace": "n"}, "n/a"),
        (
            {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}},
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:k,Operator:Exists,Values:[],},},}",
        ),
    ],
)
def test_the_table_shows_where_a_binding_takes_its_params_from(reference: Json | None, cell: str) -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"policyName": "p", "paramRef": reference}}
    cells = [column.cell(obj) for column in VALIDATING_ADMISSION_POLICY_BINDINGS.columns]
    assert cells[1:3] == ["p", cell]


def test_the_table_counts_validations() -> None:
    obj = made(VALIDATING, policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}))
    assert [column.cell(obj) for column in VALIDATING_ADMISSION_POLICIES.columns][1:3] == [1, "v1/ConfigMap"]
