"""Exploration of an operator in its own process, killed by SIGKILL at a write."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pilothouse.explore.model import Oracle, Perturbation, PerturbationKind, Point
from pilothouse.explore.runner import Explorer
from pilothouse.explore.scenario import ScenarioError, read_scenario

pytestmark = pytest.mark.asyncio

OPERATORS = Path(__file__).parent / "operators"
SCENARIO = {
    "apiVersion": "explore.pilothouse.dev/v1alpha1",
    "kind": "Exploration",
    "metadata": {"name": "command"},
    "operator": {"command": ["python", "copies.py"], "startTimeout": "10m", "quietFor": "500ms"},
    "setup": [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "copies.explore.example.com"},
            "spec": {
                "group": "explore.example.com",
                "scope": "Namespaced",
                "names": {"plural": "copies", "singular": "copy", "kind": "Copy", "listKind": "CopyList"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
    ],
    "steps": [{"apply": {"apiVersion": "explore.example.com/v1", "kind": "Copy", "metadata": {"name": "a"}}}],
}


@pytest.mark.slow
async def test_a_process_is_killed_between_two_writes() -> None:
    if sys.platform == "win32":
        pytest.skip("needs POSIX signals")
    point = Point("create", "configmaps", namespace="default", name="a")
    async with Explorer(read_scenario(SCENARIO, folder=OPERATORS)) as explorer:
        verdict = await explorer.run([Perturbation(PerturbationKind.KILL_AFTER, point)])
    assert [(one.oracle, one.object) for one in verdict.findings] == [(Oracle.FINAL_STATE, "Secret default/a")]


async def test_a_command_that_does_not_exist_is_named() -> None:
    scenario = read_scenario(SCENARIO, folder=OPERATORS)
    missing = replace(scenario, program=replace(scenario.program, command=("no-such-operator",)))
    async with Explorer(missing) as explorer:
        with pytest.raises(ScenarioError, match="cannot start no-such-operator"):
            await explorer.learned()
