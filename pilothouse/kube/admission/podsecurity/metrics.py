"""Counters of pod security evaluations and exemptions, under upstream's names."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally
from pilothouse.kube.admission.podsecurity.policy import Level, LevelVersion

_OF_REQUEST = ("request_operation", "resource", "subresource")
_NEWEST_SERVED = 36
_OPERATIONS = ("create", "update")
"""Common label sets are created in advance, with the value 0."""
_RESOURCES = {"pods": "pod", "namespaces": "namespace"}


class _Evaluations:
    def __init__(self) -> None:
        self._tally = CounterTally(
            "pod_security_evaluations",
            "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            ("decision", "policy_level", "policy_version", "mode", *_OF_REQUEST),
            registry=REGISTRY,
        )
        for operation in _OPERATIONS:
            self._tally.row(("allow", "privileged", "latest", "enforce", operation, "pod", ""))

    def record(self, decision: str, policy: LevelVersion, mode: str, attributes: Attributes) -> None:
        version = _version(policy)
        self._tally.inc((decision, policy.level.name, version, mode, *_of_request(attributes)))


class _Exemptions:
    def __init__(self) -> None:
        self._tally = CounterTally(
            "pod_security_exemptions",
            "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
            _OF_REQUEST,
            registry=REGISTRY,
        )
        for operation in _OPERATIONS:
            for resource in ("pod", "controller"):
                self._tally.row((operation, resource, ""))

    def record(self, attributes: Attributes) -> None:
        self._tally.inc(_of_request(attributes))


def _version(policy: LevelVersion) -> str:
    if policy.level is Level.privileged or policy.minor is None:
        return "latest"
    return f"v1.{policy.minor}" if policy.minor <= _NEWEST_SERVED else "future"


def _of_request(attributes: Attributes) -> tuple[str, str, str]:
    resource = _RESOURCES.get(attributes.resource.resource, "controller")
    return attributes.operation.value.lower(), resource, attributes.subresource


EVALUATIONS = _Evaluations()
EXEMPTIONS = _Exemptions()
