"""What an APIService must be, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.aggregator.apiservice.strategy import APIServiceStatusStrategy, APIServiceStrategy
from pilothouse.machinery.objects import Json

REMOTE: Json = {"namespace": "default", "name": "ext", "port": 443}


def api_service(name: str = "v1.example.com", **spec: Any) -> Json:
    wanted = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 50, "versionPriority": 10, **spec}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": wanted,
        "status": {},
    }


def problems(obj: Json) -> list[str]:
    return [str(problem) for problem in APIServiceStrategy().validate(obj)]


@pytest.mark.parametrize(
    "good",
    [
        api_service(),
        api_service(service=REMOTE, caBundle="YQ=="),
        api_service(service=REMOTE, insecureSkipTLSVerify=True),
        api_service("v1.", group=""),
        api_service(groupPriorityMinimum=20000, versionPriority=1000),
    ],
)
def test_good_ones_are_taken(good: Json) -> None:
    assert problems(good) == []


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("bad", "wanted"),
    [
        (
            api_service("v2.example.com"),
            'metadata.name: Invalid value: "v2.example.com": must be `spec.version+"."+spec.group`: "v1.example.com"',
        ),
        (
            api_service("v2.", group="", version="v2"),
            "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
        ),
        (api_service("v1.A", group="A"), f'spec.group: Invalid value: "A": {SUBDOMAIN}'),
        (
            api_service(groupPriorityMinimum=20001),
            "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
        ),
        (
            api_service(versionPriority=0),
            "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
        ),
        (
            api_service(caBundle="YWJj"),
            'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle',
        ),
        (
            api_service(insecureSkipTLSVerify=True),
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
        ),
        (api_service(service={"name": "ext", "port": 443}), "spec.service.namespace: Required value"),
        (
            api_service(service=REMOTE | {"port": 70000}),
            "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
        ),
        (
            api_service(service=REMOTE, insecureSkipTLSVerify=True, caBundle="YQ=="),
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
        ),
    ],
)
def test_bad_ones_are_refused_in_upstreams_words(bad: Json, wanted: str) -> None:
    assert problems(bad) == [wanted]


def test_a_local_one_is_available_as_soon_as_it_is_created_and_a_remote_one_is_not() -> None:
    local, remote = api_service(), api_service(service=REMOTE)
    for obj in (local, remote):
        obj["status"] = {"conditions": [{"type": "Available", "status": "False"}]}
        APIServiceStrategy().prepare_for_create(obj)
    assert [(each["status"], each["reason"]) for each in local["status"]["conditions"]] == [("True", "Local")]
    assert remote["status"] == {}


def test_the_port_of_a_service_is_443_unless_it_says_otherwise() -> None:
    unsaid, said = api_service(service={"name": "ext"}), api_service(service={"name": "ext", "port": 1})
    for obj in (unsaid, said):
        APIServiceStrategy().default(obj)
    assert [obj["spec"]["service"]["port"] for obj in (unsaid, said)] == [443, 1]


def test_the_status_changes_through_the_status_alone_and_nothing_else_does() -> None:
    old = api_service() | {"status": {"conditions": []}}
    old["metadata"]["labels"] = {"a": "b"}
    new = api_service(versionPriority=11) | {"status": {"conditions": [{"type": "Available", "status": "Odd"}]}}
    through_main, through_status = new | {}, new | {"metadata": {"name": "v1.example.com"}}
    APIServiceStrategy().prepare_for_update(through_main, old)
    assert (through_main["spec"]["versionPriority"], through_main["status"]) == (11, old["status"])
    APIServiceStatusStrategy().prepare_for_update(through_status, old)
    assert (through_status["spec"], through_status["metadata"]["labels"]) == (old["spec"], {"a": "b"})
    through_status["metadata"]["resourceVersion"] = "1"
    assert [str(each) for each in APIServiceStatusStrategy().validate_update(through_status, old)] == [
        'status.conditions[0].status: Unsupported value: "Odd": supported values: "True", "False", "Unknown"'
    ]
