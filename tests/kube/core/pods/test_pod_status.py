"""What the status of a pod may become, and what its rules make of it."""

from __future__ import annotations

from typing import Any

import pytest
from sample_pods import change_errors, changed, container, pod, stored

from pilothouse.kube.core.pods.strategy import PodStatusStrategy
from pilothouse.machinery.objects import Json

STATUS = PodStatusStrategy()


def errors_after(old: Json, new: Json, **spec: Any) -> list[str]:
    found = change_errors(STATUS, stored(pod(status=new, **spec)), stored(pod(status=old, **spec)))
    return [error.removeprefix("status.") for error in found]


@pytest.mark.parametrize(
    ("old", "new", "errors"),
    [
        ({}, {"phase": "Running", "podIP": "10.0.0.1"}, []),
        (
            {"qosClass": "BestEffort"},
            {"qosClass": "Burstable"},
            ['qosClass: Invalid value: "Burstable": field is immutable'],
        ),
        (
            {},
            {"conditions": [{"type": "", "status": "x", "observedGeneration": -1}]},
            [
                "conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
                'conditions[0].Type: Invalid value: "": name part must be non-empty',
                'conditions[0].Type: Invalid value: "": name part must consist of alphanumeric '
                "characters, '-', '_' or "
                "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
                "'my.name',  or '123-abc', "
                "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (
            {},
            {"podIP": "1.2.3"},
            ['podIPs[0]: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
        ),
        ({"podIP": "010.0.0.1"}, {"podIP": "010.0.0.1", "phase": "Running"}, []),
        (
            {},
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            [
                'podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more '
                "than one IP for each IP "
                "family"
            ],
        ),
        (
            {},
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "x"}]},
            [
                'podIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
                "podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x",
                'podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"x"}]: may specify no more than one '
                "IP for each IP family",
            ],
        ),
        ({}, {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]}, []),
        (
            {},
            {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
            ['hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`'],
        ),
        ({}, {"observedGeneration": -1}, ["observedGeneration: Invalid value: -1: must be a non-negative integer"]),
        (
            {},
            {"resourceClaimStatuses": [{"name": "a"}]},
            [
                'resourceClaimStatuses[0].name: Invalid value: "a": must match the name of an entry in '
                "`spec.resourceClaims`"
            ],
        ),
        (
            {},
            {
                "extendedResourceClaimStatus": {
                    "resourceClaimName": "",
                    "requestMappings": [{"containerName": "x", "requestName": "r", "resourceName": "a"}],
                }
            },
            [
                'extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "x": '
                "must match the name of "
                "an entry in spec.initContainers.name or spec.containers.name",
                "extendedResourceClaimStatus.resourceClaimName: Required value",
            ],
        ),
    ],
)
def test_a_status_must_be_well_formed(old: Json, new: Json, errors: list[str]) -> None:
    assert errors_after(old, new) == errors


@pytest.mark.parametrize(
    ("node", "errors"),
    [
        ("", []),
        ("n", ["nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"]),
    ],
)
def test_bound_pod_rejects_a_nominated_node(node: str, errors: list[str]) -> None:
    assert errors_after({}, {"nominatedNodeName": "m"}, nodeName=node) == errors


def state(kind: str, code: int = 0) -> Json:
    terminated = {"terminated": {"exitCode": code}}
    return {"containerStatuses": [{"name": "c", "state": terminated if kind == "ended" else {kind: {}}}]}


@pytest.mark.parametrize(
    ("policy", "code", "allowed"),
    [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False)],
)
def test_terminated_container_restarts_only_if_allowed(policy: str, code: int, allowed: bool) -> None:
    found = errors_after(state("ended", code), state("running"), restartPolicy=policy)
    refusal = ["containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"]
    assert found == ([] if allowed else refusal)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}], True),
        ([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}], False),
        ([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}}], True),
    ],
)
def test_restart_rules_of_a_container_allow_a_restart(rules: list[Json], allowed: bool) -> None:
    part = container(restartPolicy="Never", restartPolicyRules=rules)
    old = stored(pod(part, status=state("ended", 42), restartPolicy="Never"))
    new = stored(pod(part, status=state("running"), restartPolicy="Never"))
    assert (change_errors(STATUS, new, old) == []) is allowed


@pytest.mark.parametrize(
    ("resource", "errors"),
    [
        ({"name": "cpu", "resources": [{"resourceID": "a", "health": "Healthy"}]}, []),
        (
            {"name": "x", "resources": []},
            ['name: Invalid value: "x": must match one of the container\'s resource requests'],
        ),
        (
            {
                "name": "claim:a",
                "resources": [
                    {"resourceID": "a", "health": "X", "message": ""},
                    {
                        "resourceID": "a",
                        "health": "Unknown",
                    },
                ],
            },
            [
                'name: Invalid value: "claim:a": must match one of the container\'s resource claims in a format '
                "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty",
                'resources[0].health: Unsupported value: "X": supported values: "Healthy", "Unhealthy", "Unknown"',
                "resources[0].message: Required value: must be non-empty if specified",
                'resources[1].resourceID: Duplicate value: "a"',
            ],
        ),
    ],
)
def test_allocated_resources_are_those_of_the_container(resource: Json, errors: list[str]) -> None:
    part = container(resources={"requests": {"cpu": "1"}})
    status = {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [resource]}]}
    found = change_errors(STATUS, stored(pod(part, status=status)), stored(pod(part, status={})))
    prefix = "status.containerStatuses[0].allocatedResourcesStatus[0]."
    assert [error.removeprefix(prefix) for error in found] == errors


def test_container_users_are_validated() -> None:
    user = {"linux": {"uid": -1, "gid": 0, "supplementalGroups": [-2]}}
    assert errors_after({}, {"containerStatuses": [{"name": "c", "user": user}]}) == [
        "containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        "containerStatuses[0].user.linux.supplementalGroups[0]: Invalid value: -2: must be between 0 and 2147483647, "
        "inclusive",
    ]


def test_a_status_is_written_without_the_spec() -> None:
    old = stored(pod(meta={"ownerReferences": []}, status={"qosClass": "BestEffort", "observedGeneration": 3}))
    new = stored(pod(hostname="h", meta={"labels": {"a": "b"}}, status={"phase": "Running"}))
    after = changed(STATUS, new, old)
    assert after["spec"] == old["spec"]
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["status"] == {"phase": "Running", "qosClass": "BestEffort", "observedGeneration": 3}


def test_clients_that_do_not_know_observed_generations_do_not_clear_them() -> None:
    ready = {"type": "Ready", "status": "True"}
    old = stored(pod(status={"conditions": [ready | {"observedGeneration": 2}, ready | {"observedGeneration": 4}]}))
    new = stored(pod(status={"conditions": [dict(ready), ready | {"observedGeneration": 5}, dict(ready)]}))
    conditions = changed(STATUS, new, old)["status"]["conditions"]
    assert [condition.get("observedGeneration") for condition in conditions] == [2, 5, None]


def test_unusual_addresses_yield_warnings() -> None:
    made = stored(pod(status={"podIPs": [{"ip": "fd00:0::1"}]}))
    assert list(STATUS.warnings_on_update(made, made)) == [
        'status.podIPs[0].ip: IPv6 address "fd00:0::1" should be in RFC 5952 canonical format ("fd00::1")'
    ]
