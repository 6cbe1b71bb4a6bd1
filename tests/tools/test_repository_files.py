"""Configuration that only code hosts, editors and git read: it parses, and names files and programs that exist."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
GITHUB = ROOT / ".github"
CI = (ROOT / ".ci" / "run").read_text()
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").iterdir() if path.name != "config.yml")
MANIFESTS = {"pip": "pyproject.toml", "npm": "package.json", "github-actions": ".github/workflows"}
"""Ecosystem of dependabot -> file or folder that it updates."""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_dependabot_updates_folders_that_have_dependencies() -> None:
    updates = read(GITHUB / "dependabot.yml")["updates"]
    for update in updates:
        folder = ROOT / update["directory"].lstrip("/")
        assert (folder / MANIFESTS[update["package-ecosystem"]]).exists()
    assert {update["package-ecosystem"] for update in updates} == set(MANIFESTS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_issue_form_has_what_github_requires(form: Path) -> None:
    content = read(form)
    assert content["name"]
    assert content["description"]
    assert {field["type"] for field in content["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)


def test_vulnerabilities_are_reported_in_private() -> None:
    [link] = read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")["contact_links"]
    assert link["url"].startswith(PROJECT["project"]["urls"]["Source"])


def test_hooks_of_pre_commit_run_programs_of_the_project() -> None:
    [repository] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    requirements = PROJECT["project"]["optional-dependencies"]["dev"]
    for hook in repository["hooks"]:
        program, *words = hook["entry"].removeprefix(".venv/bin/").split()
        if program == "python":
            assert words[0] == "-m"
            assert importlib.util.find_spec(words[1]) is not None
        else:
            assert any(requirement.startswith(f"{program}>=") for requirement in requirements)


def test_editors_use_the_line_length_of_ruff() -> None:
    settings = ConfigParser()
    settings.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    assert settings["*.{py,pyi}"].getint("max_line_length") == PROJECT["tool"]["ruff"]["line-length"]


def test_workflows_call_existing_scripts_and_sessions() -> None:
    steps = [step for job in read(GITHUB / "workflows" / "ci.yaml")["jobs"].values() for step in job["steps"]]
    commands = [line for step in steps for line in step.get("run", "").splitlines()]
    sessions = re.findall(r"^def ([a-z]+)\(session", (ROOT / "noxfile.py").read_text(), re.M)
    assert ".ci/run" in commands
    assert {session for line in commands for session in re.findall(r"nox -s (\w+)", line)} <= set(sessions)
    assert any("nox -s coverage" in line for line in commands)


def test_ci_looks_outside_of_the_repository_for_recordings_only() -> None:
    assert set(re.findall(r"\.\./[\w./-]*", CI)) == {"../shared/golden/scenarios"}
    assert "if [ -d ../shared/golden/scenarios ]; then" in CI


def test_ci_installs_packages_of_the_system_in_ci_only_and_says_so() -> None:
    [block] = re.findall(r"^if [^\n]*\n(?:(?!^fi$).*\n)*?.*apt-get.*\n(?:.*\n)*?fi$", CI, re.M)
    assert CI.count("apt-get install -y") == block.count("apt-get install -y") == 1
    assert '[ "${CI:-}" = true ]' in block.splitlines()[0]
    assert re.search(r'^ *step ".*apt-get install chromium.*browser tests', block, re.M)
