"""Each session of noxfile.py runs programs, modules, scripts and paths that exist.

nox is a dependency of `dev` only. A stand-in takes its place: it records the commands that a session runs.
"""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SESSIONS = ("test", "fast", "slow", "lint", "types", "docs", "console", "bench", "coverage")
DISTRIBUTIONS = {"lint-imports": "import-linter"}
"""Programs that have another name than the distribution they come from."""


class RecordingSession:
    def __init__(self, backend: str = "none", posargs: tuple[str, ...] = ()) -> None:
        self.venv_backend, self.posargs = backend, list(posargs)
        self.commands: list[list[str]] = []
        self.installed: list[tuple[str, ...]] = []

    def run(self, *command: str, external: bool = False) -> None:
        self.commands.append([Path(command[0]).name, *command[1:]])

    def install(self, *words: str) -> None:
        self.installed.append(words)


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[RecordingSession], None]]:
    """Return the sessions by name."""
    sessions: dict[str, Callable[[RecordingSession], None]] = {}

    def session(function: Callable[[RecordingSession], None]) -> Callable[[RecordingSession], None]:
        sessions[function.__name__] = function
        return function

    stand_in = ModuleType("nox")
    vars(stand_in).update(session=session, Session=RecordingSession, options=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "nox", stand_in)
    runpy.run_path(str(ROOT / "noxfile.py"))
    return sessions


def test_noxfile_has_the_documented_sessions(noxfile: dict[str, Any]) -> None:
    assert sorted(noxfile) == sorted(SESSIONS)
    assert all(session.__doc__ for session in noxfile.values())


@pytest.mark.parametrize("name", SESSIONS)
def test_commands_of_a_session_exist(noxfile: dict[str, Any], name: str) -> None:
    session = RecordingSession()
    noxfile[name](session)
    assert session.installed == []
    for program, *words in session.commands:
        if program == "npm":
            _check_npm(words)
        elif program == "python":
            _check_python(words)
        else:
            distribution = DISTRIBUTIONS.get(program, program)
            assert any(requirement.startswith(f"{distribution}>=") for requirement in _extra("dev"))


def _check_npm(words: list[str]) -> None:
    prefix, folder, command, *rest = words
    assert prefix == "--prefix"
    scripts = json.loads((ROOT / folder / "package.json").read_text())["scripts"]
    assert command == "ci" or (rest[0] if command == "run" else command) in scripts


def _check_python(words: list[str]) -> None:
    if words[0] != "-m":
        assert (ROOT / words[0]).is_file()
        return
    assert importlib.util.find_spec(words[1]) is not None
    assert all((ROOT / word).exists() for word in words[2:] if word.startswith("tests/"))


def _extra(name: str) -> list[str]:
    requirements: list[str] = PROJECT["project"]["optional-dependencies"][name]
    return requirements


@pytest.mark.parametrize("name", ["test", "fast", "slow", "coverage"])
def test_markers_of_a_session_are_registered(noxfile: dict[str, Any], name: str) -> None:
    session = RecordingSession()
    noxfile[name](session)
    registered = {marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    [command] = [command for command in session.commands if "pytest" in command]
    options = pairwise(command[command.index("pytest") :])
    used = {word for option, value in options if option == "-m" for word in value.split()}
    assert used - {"not", "and", "or"} <= registered


def test_fresh_environments_are_prepared_once(noxfile: dict[str, Any]) -> None:
    session = RecordingSession(backend="venv")
    noxfile["lint"](session)
    assert session.installed == [("-q", "-e", ".[dev]")]
    assert [command[0] for command in session.commands] == ["ruff", "ruff", "lint-imports"]


def test_arguments_after_two_dashes_reach_the_tool(noxfile: dict[str, Any]) -> None:
    session = RecordingSession(posargs=("benchmarks/store.py", "--help"))
    noxfile["bench"](session)
    assert session.commands == [["python", "benchmarks/store.py", "--help"]]


@pytest.mark.skipif(importlib.util.find_spec("nox") is None, reason="nox is not installed")
def test_nox_itself_lists_the_sessions() -> None:
    command = [sys.executable, "-m", "nox", "--list", "--json", "-s", *SESSIONS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(session["name"] for session in json.loads(done.stdout)) == sorted(SESSIONS)
