"""What runtime classes may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.machinery.objects import Json


def runtime_class(**fields: Any) -> Json:
    return {"metadata": {"name": "r"}, "handler": "h", **fields}


TOLERATION = {"key": "k", "operator": "Exists"}


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({}, []),
        ({"handler": ""}, ["handler: Required value"]),
        (
            {"overhead": {"podFixed": {"cpu": "-1"}}},
            ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {"scheduling": {"tolerations": [TOLERATION, TOLERATION | {"tolerationSeconds": 1, "effect": "NoExecute"}]}},
            [],
        ),
        (
            {"scheduling": {"tolerations": [TOLERATION, TOLERATION]}},
            [
                'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"",'
                '"Effect":"","TolerationSeconds":null}'
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_runtime_class_is_named(fields: Json, refused: list[str]) -> None:
    assert refusals(RUNTIME_CLASSES, runtime_class(**fields)) == refused


def test_the_handler_stays() -> None:
    assert update_refusals(RUNTIME_CLASSES, runtime_class(handler="i"), runtime_class()) == [
        'handler: Invalid value: "i": field is immutable'
    ]


def test_old_node_labels_are_warned_of() -> None:
    made = decoded(RUNTIME_CLASSES, runtime_class(scheduling={"nodeSelector": {"beta.kubernetes.io/os": "linux"}}))
    assert list(RUNTIME_CLASSES.strategy.warnings_on_create(made)) == [
        'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
