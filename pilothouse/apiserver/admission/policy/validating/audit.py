"""What validating policies tell the audit log."""

from __future__ import annotations

import json

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.policy.hooks import Binding

_FAILURE = "validation.policy.admission.k8s.io/validation_failure"
_LONGEST_VALUE = 10 * 1024


class CollectedAnnotations:
    """Of one policy, from all of its bindings: different values of one key are joined."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}

    def add(self, key: str, value: str) -> None:
        values = self._values.setdefault(key, [])
        shortened = value.encode()[:_LONGEST_VALUE].decode(errors="ignore")
        if shortened not in values:
            values.append(shortened)

    def publish(self, policy: str, attributes: Attributes) -> None:
        for key, values in self._values.items():
            attributes.annotate(f"{policy}/{key}", ", ".join(values))


def publish_failure(attributes: Attributes, binding: Binding, index: int, message: str) -> None:
    failure = {
        "message": message,
        "policy": binding.policy_name,
        "binding": binding.name,
        "expressionIndex": index,
        "validationActions": list(binding.actions),
    }
    attributes.annotate(_FAILURE, json.dumps([failure], separators=(",", ":"), ensure_ascii=False))
