"""The fast lane covers every package, names files that exist, and is all that `pytest -m fast` collects."""

from __future__ import annotations

import subprocess
import sys

import fast_lane
import pytest

ROOT = fast_lane.TESTS.parent
PACKAGES = sorted(path.parent.name for path in (ROOT / "pilothouse").glob("*/__init__.py"))


def test_every_package_is_in_the_lane() -> None:
    assert sorted(fast_lane.LANE) == PACKAGES


@pytest.mark.parametrize("package", fast_lane.LANE)
def test_patterns_of_a_package_match_files_of_its_own_folder(package: str) -> None:
    for pattern in fast_lane.LANE[package]:
        assert pattern.removeprefix("!").startswith(f"{package}/")
        assert fast_lane.matching(pattern.removeprefix("!")), f"{pattern} matches no test file"
    assert fast_lane.files_of(package)


def test_marker_selects_the_files_of_the_lane_only() -> None:
    command = [sys.executable, "-m", "pytest", "-m", "fast", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "tests/console"], cwd=ROOT, capture_output=True, text=True, check=True)
    collected = {line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("tests/")}
    assert collected == {str(file.relative_to(ROOT)) for file in fast_lane.files_of("console")}
