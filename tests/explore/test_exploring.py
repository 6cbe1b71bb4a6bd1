"""Exploration of a small operator in this process: a careless variant is found out, a careful one passes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pilothouse.explore.model import (
    Entry,
    EntryKind,
    Oracle,
    Perturbation,
    PerturbationKind,
    Point,
    Verdict,
    from_json,
    to_json,
)
from pilothouse.explore.oracles import judge_baseline
from pilothouse.explore.runner import Explorer
from pilothouse.explore.scenario import Scenario, read_scenario

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATORS = Path(__file__).parent / "operators"
COPY = {"apiVersion": "explore.example.com/v1", "kind": "Copy"}


@pytest.fixture(scope="module", autouse=True)
def _import_path() -> Iterator[None]:
    sys.path.insert(0, str(OPERATORS))
    yield
    sys.path.remove(str(OPERATORS))


def scenario(manager: str) -> Scenario:
    from copies import Copy  # type: ignore[import-not-found]

    from pilothouse.operator import definitions

    named = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"text": "x"}}
    value: dict[str, Any] = {
        "apiVersion": "explore.pilothouse.dev/v1alpha1",
        "kind": "Exploration",
        "metadata": {"name": manager},
        "setup": [*definitions(Copy)],
        "operator": {"manager": f"copies:{manager}"},
        "steps": [{"apply": COPY | named}, {"patch": COPY | {"name": "a", "patch": {"spec": {"text": "y"}}}}],
        "perturbations": {"exclude": ["ChangeField", "DeleteOwned"]},
        "budget": {"time": "30m"},
    }
    return read_scenario(value, folder=OPERATORS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def careless() -> AsyncIterator[Explorer]:
    async with Explorer(scenario("careless")) as explorer:
        yield explorer


def after(verb: str, resource: str) -> Perturbation:
    return Perturbation(PerturbationKind.KILL_AFTER, Point(verb, resource, namespace="default", name="a"))


async def test_a_crash_between_two_writes_is_found(careless: Explorer) -> None:
    verdict = await careless.run([after("create", "configmaps")])
    assert [(one.oracle, one.object) for one in verdict.findings] == [(Oracle.FINAL_STATE, "Secret default/a")]
    actions = [entry.message for entry in verdict.result.timeline if entry.kind is EntryKind.ACTION]
    assert actions == ["kill the operator after create configmaps default/a"]
    assert (await careless.run([after("create", "secrets")])).passed


async def test_a_lost_response_is_found(careless: Explorer) -> None:
    verdict = await careless.run([replace(after("create", "configmaps"), kind=PerturbationKind.LOSE_RESPONSE)])
    assert [one.object for one in verdict.findings] == ["Secret default/a"]


async def test_the_same_perturbation_has_the_same_verdict_and_timeline(careless: Explorer) -> None:
    one, two = [await careless.run([after("create", "configmaps")]) for _ in range(2)]
    assert one.findings == two.findings
    assert [_summary(entry) for entry in one.result.timeline] == [_summary(entry) for entry in two.result.timeline]


def _summary(entry: Entry) -> tuple[str, ...]:
    return (entry.kind, entry.verb, entry.resource, entry.name, str(entry.code), entry.message)


async def test_a_point_that_is_never_reached_passes_and_is_named(careless: Explorer) -> None:
    perturbation = after("create", "pods")
    verdict = await careless.run([perturbation])
    assert verdict.passed
    assert verdict.result.missed == (perturbation.id,)


async def test_a_part_of_the_steps_has_its_own_undisturbed_run(careless: Explorer) -> None:
    verdict = await careless.run([after("create", "configmaps")], steps=[0])
    assert verdict.result.steps == (0,)
    assert [one.object for one in verdict.findings] == ["Secret default/a"]


async def test_the_timeline_has_writes_with_their_causes(careless: Explorer) -> None:
    timeline = (await careless.learned()).baseline.timeline
    created = next(entry for entry in timeline if entry.verb == "create" and entry.resource == "configmaps")
    causes = [timeline[number - 1] for number in created.causes]
    assert [(entry.verb, entry.resource, entry.name) for entry in causes] == [("ADDED", "copies", "a")]
    assert created.revision > created.before > 0


async def test_a_verdict_survives_json(careless: Explorer) -> None:
    verdict = await careless.run([after("create", "configmaps")])
    assert from_json(Verdict, to_json(verdict)) == verdict


async def test_an_exploration_resumes_with_the_verdicts_of_the_file(tmp_path: Path) -> None:
    few = replace(scenario("careless"), budget_runs=3)
    seen: list[str] = []
    for _ in range(2):
        async with Explorer(few, resume=tmp_path / "verdicts") as explorer:
            outcome = await explorer.explore(lambda verdict: seen.append(verdict.perturbations[0].id))
    assert len(seen) == len(set(seen)) == len(outcome.verdicts) == 3
    assert outcome.left == outcome.planned - 3


async def test_two_clusters_give_the_verdicts_of_one() -> None:
    few = replace(scenario("careless"), budget_runs=5)
    found = []
    for jobs in (1, 2):
        async with Explorer(few, jobs=jobs) as explorer:
            outcome = await explorer.explore()
        found.append([(one.perturbations[0].id, one.findings) for one in outcome.verdicts])
    assert found[0] == found[1]
    assert [*map(bool, (findings for _, findings in found[0]))].count(True) >= 2


ADMIN = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "copies"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "copies", "namespace": "default"}],
}


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_an_operator_has_the_permissions_of_its_service_account(is_allowed: bool) -> None:
    plain = scenario("careless")
    limited = replace(
        plain,
        program=replace(plain.program, service_account="default/copies"),
        setup=(*plain.setup, *([ADMIN] if is_allowed else [])),
    )
    async with Explorer(limited) as explorer:
        baseline = (await explorer.learned()).baseline
    requests = [entry for entry in baseline.timeline if entry.kind is EntryKind.REQUEST]
    assert {entry.actor for entry in requests} == {"system:serviceaccount:default:copies"}
    assert ("Secret default/a" in baseline.final) == is_allowed
    denied = {one.oracle for one in judge_baseline(limited, baseline).findings}
    assert denied == (set() if is_allowed else {Oracle.DENIED})


@pytest.mark.slow
async def test_every_perturbation_of_a_careful_operator_passes() -> None:
    async with Explorer(scenario("careful")) as explorer:
        outcome = await explorer.explore()
    assert [(one.perturbations[0].id, one.findings) for one in outcome.failures] == []
    assert outcome.left == 0
    kinds = {one.perturbations[0].kind for one in outcome.verdicts if not one.result.missed}
    assert {PerturbationKind.KILL_AFTER, PerturbationKind.TWO_INSTANCES, PerturbationKind.DROP_AND_RELIST} <= kinds
