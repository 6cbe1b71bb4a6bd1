"""PriorityLevelConfigurations: defaults, validation, cells."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pilothouse.apiserver.flowcontrol.mandatory import MANDATORY_LEVELS
from pilothouse.kube.flowcontrol.ensurer import SUGGESTED_LEVELS
from pilothouse.kube.flowcontrol.priority_levels import PRIORITY_LEVELS, PriorityLevelStrategy
from pilothouse.machinery.objects import Json

STRATEGY = PriorityLevelStrategy()


def level(name: str = "mine", **spec: Any) -> Json:
    obj = {"metadata": {"name": name}, "spec": deepcopy(spec), "status": {}}
    STRATEGY.default(obj)
    return obj


def limited(response: Json | None = None, **fields: Any) -> Json:
    return level(type="Limited", limited={"limitResponse": response or {"type": "Reject"}, **fields})


def queued(**queuing: int) -> Json:
    return limited({"type": "Queue", "queuing": queuing})


def complaints(obj: Json) -> list[str]:
    return [str(error) for error in STRATEGY.validate(obj)]


def test_a_limited_level_gets_shares_and_queues() -> None:
    assert queued()["spec"]["limited"] == {
        "nominalConcurrencyShares": 30,
        "lendablePercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
    }


def test_zero_shares_that_were_asked_for_stay_zero() -> None:
    assert limited(nominalConcurrencyShares=0)["spec"]["limited"]["nominalConcurrencyShares"] == 0


@pytest.mark.parametrize("name", [*MANDATORY_LEVELS, *SUGGESTED_LEVELS])
def test_the_servers_own_levels_are_valid_and_complete(name: str) -> None:
    spec = {**MANDATORY_LEVELS, **SUGGESTED_LEVELS}[name]
    obj = level(name, **spec)
    assert obj["spec"] == spec
    assert complaints(obj) == []


def test_operators_may_tune_the_exempt_level_only_inside_its_own_part() -> None:
    tuned = level("exempt", type="Exempt", exempt={"lendablePercent": 40})
    assert complaints(tuned) == []
    other = level("exempt", type="Limited", limited={"limitResponse": {"type": "Reject"}})
    assert complaints(other) == [
        "spec.type: Invalid value: \"Limited\": must be 'Exempt' if and only if `name` is 'exempt'",
        'spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":'
        '{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: '
        "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
    ]


def test_the_catch_all_level_never_changes() -> None:
    obj = level("catch-all", **deepcopy(MANDATORY_LEVELS["catch-all"]))
    obj["spec"]["limited"]["nominalConcurrencyShares"] = 6
    (complaint,) = complaints(obj)
    assert complaint.endswith("spec of 'catch-all' must equal the fixed value")


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (level(), ["spec.type: Required value"]),
        (level(type="Odd"), ['spec.type: Unsupported value: "Odd": supported values: "Exempt", "Limited"']),
        (level(type="Limited"), ["spec.limited: Required value: must not be empty when type is Limited"]),
        (
            level(type="Limited", exempt={}, limited={"limitResponse": {"type": "Reject"}}),
            ["spec.exempt: Forbidden: must be nil if the type is Limited"],
        ),
        (
            level(type="Exempt", limited={}),
            [
                "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                "spec.limited: Forbidden: must be nil if the type is not Limited",
            ],
        ),
        (
            limited(nominalConcurrencyShares=-1, lendablePercent=101, borrowingLimitPercent=-5),
            [
                "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                "spec.limited.borrowingLimitPercent: Invalid value: -5: if specified, must be a non-negative integer",
            ],
        ),
        (
            limited({"type": "Reject", "queuing": {}}),
            ["spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited"],
        ),
        (
            limited({"type": "Queue"}),
            [
                "spec.limited.limitResponse.queuing: Required value: "
                "must not be empty if limited.limitResponse.type is Limited"
            ],
        ),
        (
            limited({"type": "Drop"}),
            ['spec.limited.limitResponse.type: Unsupported value: "Drop": supported values: "Queue", "Reject"'],
        ),
        (
            queued(queueLengthLimit=-1, queues=-1, handSize=-1),
            [
                "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                "spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive",
                "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
            ],
        ),
        (
            queued(queues=10_000_001, handSize=1),
            ["spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000"],
        ),
        (
            queued(queues=4, handSize=8),
            ["spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues (4)"],
        ),
        (
            queued(queues=128, handSize=10),
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 10: required entropy bits of "
                "deckSize 128 and handSize 10 should not be greater than 60"
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_level_is_said_in_order(obj: Json, expected: list[str]) -> None:
    assert complaints(obj) == expected


def test_the_annotation_of_an_older_version_is_refused() -> None:
    key = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
    obj = limited()
    obj["metadata"]["annotations"] = {key: ""}
    assert complaints(obj) == [f"metadata.annotations: Forbidden: annotation '{key}' is forbidden"]


def test_the_table_shows_queues_only_where_there_are_any() -> None:
    def cells(obj: Json) -> list[Any]:
        return [column.cell(obj) for column in PRIORITY_LEVELS.columns if column.name not in ("Name", "Age")]

    assert cells(queued()) == ["Limited", 30, 64, 8, 50]
    assert cells(limited()) == ["Limited", 30, "<none>", "<none>", "<none>"]
    assert cells(level(type="Exempt")) == ["Exempt", "<none>", "<none>", "<none>", "<none>"]
