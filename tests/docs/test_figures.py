"""Figures that README and documentation repeat are the figures of their source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = {"1.35": ".ci/golden-floor-1.35", "1.36": ".ci/golden-floor", "1.37": ".ci/golden-floor-1.37"}


@pytest.mark.parametrize("version", FLOORS)
def test_the_recorded_steps_are_the_floor_of_ci(version: str) -> None:
    floor = f"{int((ROOT / FLOORS[version]).read_text()):,}"
    page = (ROOT / "docs/reference/fidelity.md").read_text()
    [row] = re.findall(rf"^\| {re.escape(version)} \| .*$", page, re.MULTILINE)
    assert row.split("|")[-2].strip() == floor


def test_the_readme_names_all_recorded_steps_of_one_version() -> None:
    steps = f"{int((ROOT / FLOORS['1.36']).read_text()):,}"
    assert f"{steps} of {steps} recorded responses" in (ROOT / "README.md").read_text()
