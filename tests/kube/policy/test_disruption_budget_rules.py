"""What disruption budgets may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.policy.poddisruptionbudgets import (
    DEPRECATED_LABEL,
    POD_DISRUPTION_BUDGETS,
    PodDisruptionBudgetStatusStrategy,
)
from pilothouse.machinery.objects import Json


def budget(**spec: Any) -> Json:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"minAvailable": 0, "selector": {}}, []),
        ({"maxUnavailable": "100%"}, []),
        ({"minAvailable": -1}, ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]),
        ({"maxUnavailable": "101%"}, ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
        (
            {"minAvailable": 1, "maxUnavailable": "5%"},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":"5%",'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
            ],
        ),
        (
            {"unhealthyPodEvictionPolicy": "Odd"},
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "Odd": '
                'supported values: "AlwaysAllow", "IfHealthyBudget"'
            ],
        ),
    ],
)
def test_a_budget_sets_one_limit(spec: Json, errors: list[str]) -> None:
    assert refusals(POD_DISRUPTION_BUDGETS, budget(**spec)) == errors


def test_a_selector_that_was_wrong_may_keep_its_wrong_values() -> None:
    wrong = budget(selector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]})
    assert len(refusals(POD_DISRUPTION_BUDGETS, wrong)) == 1
    assert update_refusals(POD_DISRUPTION_BUDGETS, wrong, wrong) == []
    assert len(update_refusals(POD_DISRUPTION_BUDGETS, wrong, budget())) == 1


NOTHING = {"key": DEPRECATED_LABEL, "operator": "Exists"}
OTHER = {"key": "a", "operator": "Exists"}


@pytest.mark.parametrize(
    ("expressions", "kept"),
    [
        ([NOTHING], {"matchExpressions": [NOTHING]}),
        ([NOTHING, OTHER], {"matchExpressions": [OTHER]}),
        ([{"key": DEPRECATED_LABEL, "operator": "DoesNotExist"}], {}),
    ],
)
def test_the_label_of_the_old_version_does_not_mix_with_others(expressions: list[Json], kept: Json) -> None:
    sent = budget(selector={"matchExpressions": expressions})
    assert decoded(POD_DISRUPTION_BUDGETS, sent)["spec"]["selector"] == kept


def test_an_update_must_say_what_it_is_based_on() -> None:
    assert not POD_DISRUPTION_BUDGETS.strategy.allow_unconditional_update


def test_a_new_budget_allows_nothing_yet() -> None:
    made = decoded(POD_DISRUPTION_BUDGETS, {**budget(minAvailable=1), "status": {"disruptionsAllowed": 9}})
    POD_DISRUPTION_BUDGETS.strategy.prepare_for_create(made)
    assert made["status"] == {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    assert made["metadata"]["generation"] == 1


def test_the_status_has_conditions_and_counts_that_can_be() -> None:
    status = {"expectedPods": -1, "conditions": [{"type": "T", "status": "True", "lastTransitionTime": None}]}
    made = decoded(POD_DISRUPTION_BUDGETS, {**budget(), "status": status})
    assert list(map(str, PodDisruptionBudgetStatusStrategy().validate_update(made, made))) == [
        "status.conditions[0].lastTransitionTime: Required value",
        "status.conditions[0].reason: Required value",
        "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
    ]


@pytest.mark.parametrize(
    ("spec", "cells"), [({"minAvailable": 0}, ["0", "N/A"]), ({"maxUnavailable": "10%"}, ["N/A", "10%"])]
)
def test_tables_show_the_limit(spec: Json, cells: list[str]) -> None:
    made = decoded(POD_DISRUPTION_BUDGETS, budget(**spec))
    assert [column.cell(made) for column in POD_DISRUPTION_BUDGETS.columns[1:4]] == [*cells, 0]
