"""Compare the measured coverage with the floor in .ci/coverage-floor, a percentage that only rises.

nox -s coverage                           measure, then compare
python -m tools.checks.coverage_floor     compare what `coverage combine` has left
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOOR = ".ci/coverage-floor"
CLEARLY_ABOVE = 1.0
"""Percentage points above the floor at which the floor should be raised; runs differ by less."""


def verdict(measured: float, floor: float, highest: float) -> tuple[bool, str]:
    """Return whether the check passes, and the message to print; `highest` is the highest floor ever committed."""
    if floor < highest:
        return False, f"{FLOOR} is {floor:g} and was {highest:g} before; the floor only rises: write {highest:g}"
    if measured < floor:
        return False, f"coverage is {measured:.1f} %, below the floor of {floor:g} % in {FLOOR}: add tests"
    if measured >= floor + CLEARLY_ABOVE:
        return True, f"coverage is {measured:.1f} %, clearly above the floor of {floor:g} %: raise {FLOOR}"
    return True, f"coverage is {measured:.1f} %; the floor is {floor:g} %"


def highest_committed(root: Path) -> float:
    """Return the highest floor in the git history that is present; 0 without git or without history."""
    command = ["git", "log", "--format=", "-p", "--", FLOOR]
    try:
        history = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0.0
    return max((float(value) for value in re.findall(r"^[+-](\d+(?:\.\d+)?)$", history, re.M)), default=0.0)


def _measured() -> float:
    import coverage  # a dependency of `dev`; the tests of this module run without it

    measurement = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    measurement.load()
    return float(measurement.report(file=io.StringIO()))


def main() -> int:
    floor = float((ROOT / FLOOR).read_text())
    passes, message = verdict(_measured(), floor, highest_committed(ROOT))
    print(message, file=sys.stdout if passes else sys.stderr)
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
