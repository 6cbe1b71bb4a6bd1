"""Puts one fault into a copy of the project and runs the tests that reach it until one fails.

The project itself is never touched. A test counts only if it passes in the same copy without the fault, so that a test
that fails now and then notices nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tools.mutation.faults import Fault

_TEST_LIMIT = 30  # seconds; a test that takes longer than this with a fault has noticed it
_SPARE = 60  # seconds for starting pytest, and for tests that are slower now than when they were timed
_NOT_FAILED = (0, 5)  # passed, and no such tests
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".mutation", ".*_cache", ".hypothesis", "dist")


@dataclass(frozen=True)
class Outcome:
    fault: Fault
    reached_by: int  # tests
    tried: int  # tests: those that fit into the time
    noticed_by: str  # a test; "" if none did

    @property
    def word(self) -> str:
        if not self.reached_by:
            return "unreached"
        return "noticed" if self.noticed_by else "survived"


class Bench:
    """One copy of the project, for one trial at a time."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        self._copy = folder / "project"
        shutil.copytree(root, self._copy, ignore=_NOT_COPIED)

    def try_out(self, fault: Fault, reaching: list[str], seconds: dict[str, float], budget: float) -> Outcome:
        tests = in_files(within(budget, reaching, seconds), seconds)
        tried = len(tests)
        noticed_by = ""
        while tests and not noticed_by:
            failed = self._failing(tests, fault, budget)
            if not failed:
                break
            if not self._failing([failed], None, budget):
                noticed_by = failed
            tests.remove(failed)
        return Outcome(fault, len(reaching), tried, noticed_by)

    def _failing(self, tests: list[str], fault: Fault | None, budget: float) -> str:
        """The first of the tests that fails, or hangs, with the fault."""
        if fault is None:
            return self._run(tests, budget)
        file = self._copy / fault.path
        right = file.read_bytes()
        # Byte code goes by size and second: the one of another fault could be taken for this one's.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_bytes(fault.applied_to(right))
        try:
            return self._run(tests, budget)
        finally:
            file.write_bytes(right)

    def _run(self, tests: list[str], budget: float) -> str:
        wanted, failed = self._folder / "wanted.json", self._folder / "failed"
        wanted.write_text(json.dumps(tests))
        failed.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "tools.mutation.order_plugin", "--tb=no", "-s"]
        command += [
            "-p",
            "no:cacheprovider",
            f"--timeout={_TEST_LIMIT}",
            f"-ofaulthandler_timeout={2 * _TEST_LIMIT}",
            *dict.fromkeys(map(file_of, tests)),
        ]
        environment = os.environ | {
            "PYTHONPATH": str(self._copy),
            "PYTHONDONTWRITEBYTECODE": "1",
            "MUTATION_TESTS": str(wanted),
            "TMPDIR": str(self._folder),
        }
        code = _ended(command, self._copy, environment, limit=budget + _SPARE)
        if failed.exists():
            return failed.read_text()
        return tests[0] if code not in _NOT_FAILED else ""  # the fault kept it from starting, or ended the process


def _ended(command: list[str], folder: Path, environment: dict[str, str], limit: float) -> int:
    """The exit code; everything that the tests started is gone when this returns."""
    running = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return running.wait(limit)
    except subprocess.TimeoutExpired:
        return 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def within(budget: float, tests: list[str], seconds: dict[str, float]) -> list[str]:
    """The fastest tests that together take no longer than the budget, and at least one."""
    chosen: list[str] = []
    for test in tests:
        budget -= seconds[test]
        if budget < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def in_files(tests: list[str], seconds: dict[str, float]) -> list[str]:
    """File by file, because tests of one file share what is slow to set up; the fastest file first."""
    totals: dict[str, float] = {}
    for test in tests:
        totals[file_of(test)] = totals.get(file_of(test), 0.0) + seconds[test]
    return sorted(tests, key=lambda test: (totals[file_of(test)], file_of(test)))


def file_of(test: str) -> str:
    return test.split("::")[0]
