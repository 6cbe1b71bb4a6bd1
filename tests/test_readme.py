"""The programs and commands that README.md and CONTRIBUTING.md show work when they are copied.

A command is an indented line; `&&` separates its parts. The first row of CHECKS that matches a part checks the part.
Parts are run as far as that is cheap: an environment is made without its packages, and pytest only collects, because
the suite cannot run inside of itself.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_process import ServeProcess

from tools.builtin_types.overlay import read_overlay

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in _FENCED.findall((ROOT / page).read_text()) if found == language]


def commands(page: str) -> list[str]:
    return re.findall(r"^    (\S.*)$", _FENCED.sub("", (ROOT / page).read_text()), re.MULTILINE)


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_environment(words: list[str], tmp_path: Path) -> None:
    [folder] = words
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / folder))
    assert (tmp_path / folder / "bin" / "python").exists(), "later parts use .venv/bin"


def check_installation(words: list[str], tmp_path: Path) -> None:
    [requirement] = [word for word in words if word not in ("-q", "-e")]
    found = re.fullmatch(r"\.(?:\[([\w,]+)\])?", requirement)
    assert found
    assert set((found[1] or "").split(",")) - {""} <= set(PROJECT["optional-dependencies"])


def check_tests(words: list[str], tmp_path: Path) -> None:
    """Collect; pytest exits with 5 if there is no test. Without a path, this file stands for all tests."""
    paths = [word for word in words if word.startswith("tests/")]
    collect = ("--collect-only", "-p", "no:cacheprovider", *([] if paths else [__file__]))
    run(sys.executable, "-m", "pytest", *words, *collect)


def check_reference(words: list[str], tmp_path: Path) -> None:
    """Ask for help, which writes nothing; tests/docs/test_reference.py compares the pages."""
    run(sys.executable, "-m", "tools.docs", "reference", *words, "--help")


def check_script(words: list[str], tmp_path: Path) -> None:
    run(sys.executable, *words)


def check_session(words: list[str], tmp_path: Path) -> None:
    option, name = words
    assert option == "-s"
    assert f"@nox.session\ndef {name}(" in (ROOT / "noxfile.py").read_text()
    assert _is_required_for_development("nox")


def check_hooks(words: list[str], tmp_path: Path) -> None:
    assert words == []
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert configuration["default_install_hook_types"] == ["pre-commit", "commit-msg"]
    assert _is_required_for_development("pre-commit")


def check_server(words: list[str], tmp_path: Path) -> None:
    """Start the installed program until it prints the line for kubectl, then press Ctrl-C."""

    class Installed(ServeProcess):
        program = (str(Path(sys.executable).with_name("pilothouse")),)

    server = Installed(tmp_path / "data", *words)
    try:
        assert "export KUBECONFIG=" in server.greeting
        server.signal(signal.SIGINT)
        assert server.wait() == 0
    finally:
        server.close()


def _is_required_for_development(name: str) -> bool:
    return any(requirement.startswith(f"{name}>=") for requirement in PROJECT["optional-dependencies"]["dev"])


CHECKS: dict[str, Callable[[list[str], Path], None]] = {
    "python3 -m venv": check_environment,
    ".venv/bin/pip install": check_installation,
    ".venv/bin/python -m pytest": check_tests,
    ".venv/bin/python -m tools.docs reference": check_reference,
    ".venv/bin/python": check_script,
    ".venv/bin/nox": check_session,
    ".venv/bin/pre-commit install": check_hooks,
    ".venv/bin/pilothouse serve": check_server,
}
"""First words of a part -> check of the words that follow."""


@pytest.mark.parametrize("command", [command for page in PAGES for command in commands(page)])
def test_each_part_of_a_command_works(command: str, tmp_path: Path) -> None:
    for part in command.split(" && "):
        start = next((start for start in CHECKS if f"{part} ".startswith(f"{start} ")), None)
        assert start is not None, f"add a check for: {part}"
        CHECKS[start](shlex.split(part.removeprefix(start)), tmp_path)


def test_the_readme_has_two_commands() -> None:
    server, tests = commands("README.md")
    assert server.endswith(" && .venv/bin/pilothouse serve")
    assert " && .venv/bin/python -m pytest " in tests


@pytest.mark.parametrize("block", blocks("README.md", "python"))
def test_the_code_of_the_readme_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", blocks("README.md", "python"))
def test_the_readme_uses_public_names_only(block: str) -> None:
    imported = set(re.findall(r"^from (pilothouse\S*) import", block, re.MULTILINE))
    assert imported <= {"pilothouse.builder", "pilothouse.client", "pilothouse.errors", "pilothouse.testing"}
    assert imported


def test_the_field_that_contributing_adds_can_be_read(tmp_path: Path) -> None:
    [table] = blocks("CONTRIBUTING.md", "toml")
    (tmp_path / "overlay.toml").write_text(table)
    [field] = read_overlay(tmp_path / "overlay.toml").fields
    assert field.name == "reviewed"
