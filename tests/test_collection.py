"""pytest collects the same tests in every process, whatever its hash seed, its clock and its working directory.

pytest-xdist runs no test at all when two of its workers have collected different ids.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE

ROOT = Path(__file__).parents[1]
PLUGIN = "shifted_clock"


def _start(folder: Path, *paths: Path, seed: int, shift: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "", "-p", "no:cacheprovider", "-p", PLUGIN]
    environment = os.environ | {
        "PYTHONHASHSEED": str(seed),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests/support"), str(ROOT)]),
        "SHIFTED_CLOCK": str(shift),
    }
    where = [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", *map(str, paths)]
    return subprocess.Popen([*command, *where], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def _ids(collecting: subprocess.Popen[str]) -> list[str]:
    printed, _ = collecting.communicate(timeout=PATIENCE)
    assert collecting.returncode == 0, printed[-5000:]
    return [line for line in printed.splitlines() if "::" in line]


def collected_twice(tmp_path: Path, *paths: Path) -> tuple[list[str], list[str]]:
    """Return the ids that two processes collect: with other hash seeds, a day apart, in different folders."""
    first = _start(ROOT, *paths, seed=1, shift=0)
    second = _start(tmp_path, *paths, seed=2, shift=86_400)
    return _ids(first), _ids(second)


@pytest.mark.slow
def test_two_processes_collect_the_same_tests(tmp_path: Path) -> None:
    first, second = collected_twice(tmp_path, ROOT / "tests")
    assert set(first) ^ set(second) == set()
    assert first == second
    assert len(first) > 10_000


def test_the_check_finds_ids_that_change(tmp_path: Path) -> None:
    changing = ["time.time_ns()", "datetime.now()", "hash('a')", "os.getcwd()", "gzip.compress(b'')"]
    module = tmp_path / "test_changing.py"
    module.write_text(
        "import gzip, os, time\nfrom datetime import datetime\nimport pytest\n"
        f"@pytest.mark.parametrize('value', [0] * {len(changing)}, ids=map(str, [{', '.join(changing)}]))\n"
        "def test_it(value): pass\n"
    )
    first, second = collected_twice(tmp_path, module)
    assert len(first) == len(second) == len(changing)
    assert set(first) & set(second) == set()
