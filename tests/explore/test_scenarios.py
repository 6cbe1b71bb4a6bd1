"""explore.yaml: problems are listed, and files are read relative to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.explore.model import PerturbationKind
from pilothouse.explore.recording import Noise, differences, normalize
from pilothouse.explore.scenario import Ignored, ScenarioError, load_scenario

MINIMAL = """
apiVersion: explore.pilothouse.dev/v1alpha1
kind: Exploration
metadata: {name: backup}
operator: {command: [python, operator.py]}
setup: [objects.yaml]
steps:
- apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- delete: {apiVersion: v1, kind: ConfigMap, name: a}
perturbations: {exclude: [AdvanceClock]}
settle: {window: 30s}
"""


def test_a_scenario_is_read_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "objects.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n# nothing\n")
    (tmp_path / "explore.yaml").write_text(MINIMAL)
    scenario = load_scenario(tmp_path / "explore.yaml")
    assert [obj["kind"] for obj in scenario.setup] == ["Secret"]
    assert [step.name for step in scenario.steps] == ["apply ConfigMap a", "delete ConfigMap a"]
    assert scenario.program.directory == tmp_path
    assert PerturbationKind.ADVANCE_CLOCK not in scenario.kinds
    assert scenario.window == 30


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("command: [python, operator.py]", "env: {}", "operator: exactly one of manager, callable"),
        ("window: 30s", "window: long", "settle.window: 'long' does not match"),
        ("AdvanceClock", "Everything", r"perturbations.exclude\[0\]: must be one of KillBefore"),
        ("metadata: {name: backup}", "metadata: {}", "metadata: name is required"),
        ("kind: Exploration", "kind: Exploration\ncolour: red", "unknown field colour"),
        ("objects.yaml", "missing.yaml", "cannot read the manifests"),
    ],
)
def test_problems_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "objects.yaml").write_text("")
    (tmp_path / "explore.yaml").write_text(MINIMAL.replace(old, new))
    with pytest.raises(ScenarioError, match=message):
        load_scenario(tmp_path / "explore.yaml")


def test_uids_generated_names_and_times_are_no_differences() -> None:
    def state(uid: str, name: str, time: str, text: str) -> dict[str, dict[str, object]]:
        owner = {"kind": "ConfigMap", "name": "a", "uid": uid}
        meta = {"name": name, "generateName": "p-", "ownerReferences": [owner]}
        return {
            "ConfigMap a": {"kind": "ConfigMap", "metadata": {"name": "a", "uid": uid}, "data": {"pod": name}},
            f"Pod {name}": {"kind": "Pod", "metadata": meta, "status": {"at": time, "text": text}},
        }

    one = normalize(state("1-2", "p-abcde", "2026-01-01T00:00:00Z", "x"), Noise())
    two = normalize(state("3-4", "p-fghij", "2026-01-02T00:00:00Z", "y"), Noise())
    found = [*differences(one, two, Noise(), {"Pod p-*"})]
    assert [(one.object, one.path, one.expected, one.actual) for one in found] == [
        ("Pod p-*", "/status/text", "x", "y")
    ]
    assert [*differences(one, two, Noise(), {"Pod p-*"}, [Ignored("Pod", "", "/status/*")])] == []
    assert [*differences(one, two, Noise(), {"Pod q"})] == []
