"""Webhook configurations: defaults, validation, and what older objects may keep."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.kube.admissionregistration.webhook_configurations import (
    MutatingWebhookStrategy,
    ValidatingWebhookStrategy,
)
from pilothouse.machinery.objects import Json

VALIDATING, MUTATING = ValidatingWebhookStrategy(), MutatingWebhookStrategy()
RULE: Json = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def hook(**changes: Any) -> Json:
    whole = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/x"},
        **changes,
    }
    return {key: value for key, value in deepcopy(whole).items() if value is not None}


def configuration(*hooks: Json, strategy: ValidatingWebhookStrategy = VALIDATING) -> Json:
    obj = {"metadata": {"name": "mine", "generation": 1}, "webhooks": list(hooks)}
    strategy.default(obj)
    return obj


def complaints(*hooks: Json, strategy: ValidatingWebhookStrategy = VALIDATING) -> list[str]:
    return [str(error) for error in strategy.validate(configuration(*hooks, strategy=strategy))]


def of_rule(**changes: Any) -> list[str]:
    return complaints(hook(rules=[{**RULE, **changes}]))


def of_client(**config: Any) -> list[str]:
    return complaints(hook(clientConfig=config))


def test_a_webhook_gets_upstreams_defaults() -> None:
    service = {"clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": [RULE]}
    (made,) = configuration(hook(**service), strategy=MUTATING)["webhooks"]
    assert made == hook(
        clientConfig={"service": {"name": "s", "namespace": "n", "port": 443}},
        rules=[{**RULE, "scope": "*"}],
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
        reinvocationPolicy="Never",
    )
    assert "reinvocationPolicy" not in configuration(hook())["webhooks"][0]
    assert complaints(hook(**service)) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, ["webhooks[0].name: Required value"]),
        (
            {"name": "a.b"},
            [
                'webhooks[0].name: Invalid value: "a.b": '
                "should be a domain with at least three segments separated by dots"
            ],
        ),
        ({"sideEffects": None}, ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]),
        (
            {"sideEffects": "Some"},
            ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
        ),
        (
            {"timeoutSeconds": 31},
            ["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        ),
        (
            {"admissionReviewVersions": []},
            ["webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
        ),
        (
            {"admissionReviewVersions": ["v2", "v2"]},
            [
                'webhooks[0].admissionReviewVersions[1]: Invalid value: "v2": duplicate version',
                'webhooks[0].admissionReviewVersions: Invalid value: ["v2","v2"]: '
                "must include at least one of v1, v1beta1",
            ],
        ),
        (
            {"matchConditions": [{"name": "x", "expression": " object.foo "}, {"name": "x", "expression": "true"}]},
            [
                'webhooks[0].matchConditions[0].expression: Invalid value: "object.foo": '
                "must evaluate to bool but got dyn",
                'webhooks[0].matchConditions[1].name: Duplicate value: "x"',
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_webhook_is_said_in_order(changes: Json, expected: list[str]) -> None:
    assert complaints(hook(**changes)) == expected


def test_two_webhooks_of_one_configuration_have_different_names() -> None:
    assert complaints(hook(), hook()) == ['webhooks[1].name: Duplicate value: "a.example.com"']


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (["pods", "pods/status"], []),
        (["*"], []),
        (["*/*"], []),
        ([], ["webhooks[0].rules[0].resources: Required value"]),
        ([""], ["webhooks[0].rules[0].resources[0]: Required value"]),
        (
            ["pods/*", "pods/status"],
            [
                'webhooks[0].rules[0].resources[1]: Invalid value: "pods/status": '
                "if 'pods/*' is present, must not specify pods/status"
            ],
        ),
        (
            ["*/scale", "pods/scale"],
            [
                'webhooks[0].rules[0].resources[1]: Invalid value: "pods/scale": '
                "if '*/scale' is present, must not specify pods/scale"
            ],
        ),
        (
            ["*/*", "pods"],
            [
                'webhooks[0].rules[0].resources: Invalid value: ["*/*","pods"]: '
                "if '*/*' is present, must not specify other resources"
            ],
        ),
        (
            ["*", "pods"],
            [
                'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: '
                "if '*' is present, must not specify other resources without subresources"
            ],
        ),
    ],
)
def test_a_wildcard_leaves_nothing_else_to_name(resources: list[str], expected: list[str]) -> None:
    assert of_rule(resources=resources) == expected


def test_the_other_parts_of_a_rule_are_checked_too() -> None:
    changes = {"operations": ["*", "MOVE"], "apiGroups": [], "apiVersions": ["v1", ""], "scope": "World"}
    assert of_rule(**changes) == [
        'webhooks[0].rules[0].operations: Invalid value: ["*","MOVE"]: '
        "if '*' is present, must not specify other operations",
        'webhooks[0].rules[0].operations[1]: Unsupported value: "MOVE": '
        'supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
        "webhooks[0].rules[0].apiGroups: Required value",
        "webhooks[0].rules[0].apiVersions[1]: Required value",
        'webhooks[0].rules[0].scope: Unsupported value: "World": supported values: "*", "Cluster", "Namespaced"',
    ]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://h/x", ""),
        ("http://h", "Invalid value: \"http\": 'https' is the only allowed URL scheme"),
        ("https:///x", 'Invalid value: "": host must be specified'),
        ("https://u:p@h", 'Invalid value: "u:p": user information is not permitted in the URL'),
        ("https://h#f", 'Invalid value: "f": fragments are not permitted in the URL'),
        ("https://h?a=b", 'Invalid value: "a=b": query parameters are not permitted in the URL'),
        (":x", 'Required value: url must be a valid URL: parse ":x": missing protocol scheme'),
        ("https://h:x", 'url must be a valid URL: parse "https://h:x": invalid port ":x" after host'),
        ("https://h/%zz", 'url must be a valid URL: parse "https://h/%zz": invalid URL escape "%zz"'),
        ("https://a b", 'url must be a valid URL: parse "https://a b": invalid character " " in host name'),
    ],
)
def test_a_webhook_is_called_at_a_plain_https_url(url: str, problem: str) -> None:
    found = of_client(url=url)
    assert len(found) == (1 if problem else 0)
    assert all(problem in text for text in found)


def test_a_service_needs_name_namespace_port_and_a_path_of_dns_names() -> None:
    assert of_client(service={"name": "n", "namespace": "", "port": 0, "path": "x/Y/"}) == [
        "webhooks[0].clientConfig.service.name: Required value",
        "webhooks[0].clientConfig.service.port: Invalid value: 0: "
        "port is not valid: must be between 1 and 65535, inclusive",
        "webhooks[0].clientConfig.service.path: Invalid value: \"x/Y/\": must start with a '/'",
        'webhooks[0].clientConfig.service.path: Invalid value: "x/Y/": segment[0] may not be empty',
        'webhooks[0].clientConfig.service.path: Invalid value: "x/Y/": segment[1]: a lowercase RFC 1123 subdomain '
        "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
        "character (e.g. 'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ]
    assert of_client() == ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"]


def test_an_update_may_keep_what_is_no_longer_allowed() -> None:
    old = configuration(
        hook(sideEffects="Unknown", admissionReviewVersions=["v9"], matchConditions=[{"name": "x", "expression": "1"}]),
        hook(),
    )
    new = deepcopy(old)
    assert [str(error) for error in VALIDATING.validate_update(new, old)] == []
    assert len(list(VALIDATING.validate(new))) == 4


def test_generations_count_the_changes_of_webhooks() -> None:
    old, same, other = configuration(hook()), configuration(hook()), configuration(hook(timeoutSeconds=3))
    for obj, generation in ((same, 1), (other, 2)):
        VALIDATING.prepare_for_update(obj, old)
        assert obj["metadata"]["generation"] == generation


def test_a_reserved_name_is_warned_of() -> None:
    (warning,) = VALIDATING.warnings_on_create({"metadata": {"name": "a.static.k8s.io"}})
    assert warning.startswith('metadata.name: names ending with ".static.k8s.io" are reserved')
    assert list(VALIDATING.warnings_on_create({"metadata": {"name": "a"}})) == []
