"""Which tests reach a line, and how long they take: found out once for each test file, and kept in `.mutation/`.

A test file is run again when it has changed. A source file that has changed since its lines were noted keeps its
tests, but no longer knows which of them reaches which line: all of them count as reaching every line.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import coverage

from tools.mutation.faults import Fault

_SETTINGS = """\
[run]
source = {root}/pilothouse
data_file = {cache}/lines
context = ${{MUTATION_TEST-}}
patch = subprocess
parallel = true
"""
_FILES_AT_ONCE = 40


class Reach:
    def __init__(self, root: Path, processes: int) -> None:
        self._root = root
        self._processes = processes
        self._cache = root / ".mutation"
        self._known = self._read()

    @property
    def seconds(self) -> dict[str, float]:
        """Of each test that passed."""
        return self._known["seconds"]

    @cached_property
    def _lines(self) -> coverage.CoverageData:
        lines = coverage.CoverageData(str(self._cache / "lines"))
        lines.read()  # a file that was not read is emptied at its first use
        return lines

    def renew(self, folder: str) -> None:
        """Runs the test files of a folder that are new or have changed. What was noted is kept if it is interrupted."""
        now = {str(path): _digest(self._root / path) for path in _files(self._root, folder, "test_*.py")}
        stale = [path for path, digest in now.items() if self._known["tests"].get(path) != digest]
        for start in range(0, len(stale), _FILES_AT_ONCE):
            files = stale[start : start + _FILES_AT_ONCE]
            print(f"noting what tests reach: {start} of {len(stale)} files", flush=True)
            self._note(files)
            self._known["tests"] |= {path: now[path] for path in files}
            (self._cache / "known.json").write_text(json.dumps(self._known))

    def _note(self, files: list[str]) -> None:
        sources = {str(path): _digest(self._root / path) for path in _files(self._root, "pilothouse", "*.py")}
        known = self._known["sources"]
        # A file that changed between two notes has lines of both: they are not told apart any more.
        self._known["sources"] = {
            path: digest if known.get(path, digest) == digest else "" for path, digest in sources.items()
        }
        passed = self._run(files)
        kept = {test: seconds for test, seconds in self.seconds.items() if test.split("::")[0] not in files}
        self._known["seconds"] = kept | passed

    def tests_of(self, fault: Fault) -> list[str]:
        """The tests that reach the fault's line, the fastest first."""
        by_line = self._lines.contexts_by_lineno(str(self._root / fault.path))
        if self._known["sources"].get(str(fault.path)) == _digest(self._root / fault.path):
            # Not every line of a statement over many lines is seen to be reached.
            contexts = set(by_line.get(fault.line) or by_line.get(fault.statement) or ())
        else:
            contexts = set().union(*by_line.values())
        tests = {context.strip("|") for context in contexts} & self.seconds.keys()
        return sorted(tests, key=self.seconds.__getitem__)

    def _run(self, files: list[str]) -> dict[str, float]:
        self._cache.mkdir(exist_ok=True)
        (self._cache / "coveragerc").write_text(_SETTINGS.format(root=self._root, cache=self._cache))
        command = [sys.executable, "-m", "pytest", "-p", "tools.mutation.reach_plugin", "-p", "no:cacheprovider"]
        command += [
            f"-n{self._processes}",
            "--dist=loadfile",
            "--timeout=300",
            "-ofaulthandler_timeout=400",
            "--tb=no",
            *files,
        ]
        environment = os.environ | {"PYTHONPATH": str(self._root), "MUTATION_CACHE": str(self._cache)}
        subprocess.run(command, cwd=self._root, env=environment, check=False)
        combined = coverage.Coverage(config_file=str(self._cache / "coveragerc"))
        combined.load()  # or the new lines would take the place of those that are known
        combined.combine(strict=False)
        combined.save()
        found: dict[str, float] = json.loads((self._cache / "passed.json").read_text())
        return found

    def _read(self) -> dict[str, dict[str, Any]]:
        file = self._cache / "known.json"
        return json.loads(file.read_text()) if file.exists() else {"seconds": {}, "tests": {}, "sources": {}}


def _files(root: Path, folder: str, pattern: str) -> list[Path]:
    return sorted(path.relative_to(root) for path in (root / folder).rglob(pattern))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
