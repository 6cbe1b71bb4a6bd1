"""Validating policies on single requests: parameters, audit annotations, budgets, and wrong configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from admission_policies import binding, policy
from admission_requests import writing

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.matching import Matcher
from pilothouse.apiserver.admission.policy import validating_dispatcher, validator
from pilothouse.apiserver.admission.policy.invocations import Invocations
from pilothouse.apiserver.admission.policy.params import ParamResource
from pilothouse.apiserver.admission.policy.source import AdmissionPolicy, Hook, PolicyBinding
from pilothouse.apiserver.admission.policy.validating_dispatcher import ValidatingDispatcher
from pilothouse.apiserver.admission.policy.validator import PolicyValidator
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of
from pilothouse.machinery.selectors.labels import Selector
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.version_rules import RULES

LIMIT = {"apiVersion": "example.com/v1", "kind": "Limit"}


class Limits:
    """Parameters of one kind."""

    def __init__(self, *objects: Json, namespaced: bool = True) -> None:
        self._objects = objects
        self._namespaced = namespaced

    async def resource(self, kind: GroupVersionKind) -> ParamResource | None:
        known = kind == GroupVersionKind("example.com", "v1", "Limit")
        return ParamResource(kind.group_version.resource("limits"), self._namespaced) if known else None

    async def get(self, resource: ParamResource, namespace: str, name: str) -> Json | None:
        return next((each for each in self._objects if (namespace_of(each), name_of(each)) == (namespace, name)), None)

    async def list(self, resource: ParamResource, namespace: str, selector: Selector) -> list[Json]:
        return [each for each in self._objects if namespace_of(each) == namespace and selector.matches(labels_of(each))]


def limit(name: str, most: int, namespace: str = "default") -> Json:
    meta = {"name": name, "namespace": namespace, "labels": {"kind": "limit"}}
    return {**LIMIT, "metadata": meta, "most": most}


def request(size: int = 3, **more: Any) -> Attributes:
    return writing({"metadata": {"name": "a"}, "size": size}, resource="configmaps", kind="ConfigMap", **more)


async def dispatch(attributes: Attributes, spec: Json, *bindings: Json, params: Limits | None = None) -> str:
    """What the request is refused with; empty where it is not."""

    async def namespace(name: str) -> Json:
        return {"metadata": {"name": name}}

    everywhere: Json = {"namespaceSelector": {}, "objectSelector": {}}
    hook = Hook(
        AdmissionPolicy(policy("p", constraints=everywhere, **spec), PolicyValidator),
        [PolicyBinding.of(each) for each in bindings],
    )
    dispatcher = ValidatingDispatcher(Invocations(Matcher(namespace), params or Limits()), AlwaysAllow())
    try:
        await dispatcher.dispatch([hook], attributes)
    except StatusError as error:
        return error.message.rpartition("denied request: ")[2]
    return ""


CHECK: Json = {
    "paramKind": LIMIT,
    "validations": [
        {"expression": "object.size <= params.most", "messageExpression": "'more than ' + string(params.most)"}
    ],
}


async def test_every_parameter_that_a_selector_finds_has_its_say() -> None:
    by_labels = binding("p", paramRef={"selector": {}, "parameterNotFoundAction": "Deny"})
    params = Limits(limit("a", 9), limit("b", 2), limit("c", 1, "elsewhere"))
    assert await dispatch(request(), CHECK, by_labels, params=params) == "more than 2"
    assert await dispatch(request(size=1), CHECK, by_labels, params=params) == ""


@pytest.mark.parametrize(
    ("reference", "params", "why"),
    [
        ({"name": "a", "parameterNotFoundAction": "Allow"}, Limits(), ""),
        (
            {"name": "a", "parameterNotFoundAction": "Deny"},
            Limits(),
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        ({"name": "c", "namespace": "elsewhere"}, Limits(limit("c", 1, "elsewhere")), "more than 1"),
        (
            {"name": "c", "namespace": "elsewhere"},
            Limits(namespaced=False),
            "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
async def test_a_reference_leads_to_a_parameter_or_to_what_is_wrong_with_it(
    reference: Json, params: Limits, why: str
) -> None:
    assert await dispatch(request(), CHECK, binding("p", paramRef=reference), params=params) == why


async def test_a_binding_without_a_reference_has_null_for_a_parameter() -> None:
    spec = {**CHECK, "validations": [{"expression": "params == null"}]}
    assert await dispatch(request(), spec, binding("p")) == ""


async def test_audit_annotations_of_all_bindings_are_joined_and_failures_are_noted() -> None:
    noted: dict[str, str] = {}

    def annotate(key: str, value: str, level: str = "") -> None:
        noted.setdefault(key, value)

    spec = {
        **CHECK,
        "auditAnnotations": [
            {"key": "limit", "valueExpression": "'most ' + string(params.most)"},
            {"key": "silent", "valueExpression": "object.size > 100 ? 'large' : ''"},
        ],
    }
    params = Limits(limit("a", 9), limit("b", 2))
    bindings = [
        binding(name, policyName="p", paramRef={"name": name}, validationActions=["Audit"]) for name in ("a", "b")
    ]
    assert await dispatch(request(annotate=annotate), spec, *bindings, params=params) == ""
    assert noted.pop("p/limit") == "most 9, most 2"
    assert json.loads(noted.pop("validation.policy.admission.k8s.io/validation_failure")) == [
        {
            "message": "more than 2",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 0,
            "validationActions": ["Audit"],
        }
    ]
    assert noted == {}


@pytest.mark.parametrize(("minor", "bindings"), [(36, ["a"]), (37, ["a", "b"])])
async def test_failures_of_all_bindings_are_in_one_annotation(
    monkeypatch: pytest.MonkeyPatch, minor: int, bindings: list[str]
) -> None:
    noted: dict[str, str] = {}

    def annotate(key: str, value: str, level: str = "") -> None:
        noted[key] = value

    monkeypatch.setattr(validating_dispatcher, "holds", lambda name: RULES[name].holds_in(minor))
    audited = [binding(name, policyName="p", validationActions=["Audit"]) for name in ("a", "b")]
    assert await dispatch(request(annotate=annotate), {"validations": [{"expression": "false"}]}, *audited) == ""
    [failures] = map(json.loads, noted.values())
    assert [failure["binding"] for failure in failures] == bindings


async def test_an_audit_annotation_that_fails_denies_unless_failures_are_ignored() -> None:
    spec = {"auditAnnotations": [{"key": "k", "valueExpression": "'x' + object.none"}]}
    why = "expression ''x' + object.none' resulted in error: no such key: none"
    assert await dispatch(request(), spec, binding("p", validationActions=["Audit"])) == why
    assert await dispatch(request(), {**spec, "failurePolicy": "Ignore"}, binding("p")) == ""


async def test_expressions_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validator, "BUDGET", 100)
    validations = [{"expression": "[1, 2, 3].all(x, x < 9)"}]
    assert await dispatch(request(), {"validations": validations}, binding("p")) == ""
    answer = await dispatch(request(), {"validations": validations * 10}, binding("p"))
    assert answer == "validation failed due to running out of cost budget, no further validation rules will be run"


async def test_messages_that_cannot_be_shown_give_way_to_the_fixed_one() -> None:
    for message in ("'a\\nb'", "'   '", "object.none + ''"):
        validation = {"expression": "false", "messageExpression": message, "message": "no"}
        assert await dispatch(request(), {"validations": [validation]}, binding("p")) == "no"
