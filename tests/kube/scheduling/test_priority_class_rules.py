"""Validation of PriorityClasses."""

from __future__ import annotations

import pytest

from pilothouse.kube.scheduling.priorityclasses import PriorityClassStrategy


@pytest.mark.parametrize(
    ("policy", "errors"),
    [
        ("Never", []),
        ("", ["preemptionPolicy: Required value"]),
        ("X", ['preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"']),
    ],
)
def test_preemption_policy_is_required_and_known(policy: str, errors: list[str]) -> None:
    obj = {"metadata": {"name": "a"}, "value": 1, "preemptionPolicy": policy}
    assert list(map(str, PriorityClassStrategy().validate(obj))) == errors
