"""What a release says of itself agrees: the version, the changelog and the workflow that publishes it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml
from patience import PATIENCE

import pilothouse
from tools.docs.site.build import list_versions

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RELEASES = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$", (ROOT / "CHANGELOG.md").read_text(), re.M)


def workflow(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github/workflows" / name).read_text())


def test_the_newest_release_in_the_changelog_is_the_version() -> None:
    assert RELEASES[0] == pilothouse.__version__
    assert sorted(RELEASES, key=lambda release: [int(part) for part in release.split(".")], reverse=True) == RELEASES


def test_each_version_of_the_changelog_links_to_its_tag() -> None:
    links = dict(re.findall(r"^\[(\S+)\]: (https://\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M))
    assert list(links) == ["Unreleased", *RELEASES]
    assert links["Unreleased"] == f"{PROJECT['urls']['Source']}/compare/v{RELEASES[0]}...HEAD"
    for release in RELEASES:
        assert links[release].startswith(PROJECT["urls"]["Source"])
        assert links[release].endswith(f"v{release}")


def test_the_changelog_has_only_headings_of_keep_a_changelog() -> None:
    headings = set(re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_every_classified_python_and_system_is_run_by_ci_and_nothing_else_may_hold_up_a_change() -> None:
    jobs = workflow("ci.yaml")["jobs"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    proven = {
        oldest,
        *(row["python"] for row in jobs["tests"]["strategy"]["matrix"]["include"] if not row.get("unproven")),
    }
    assert proven == {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r"Python :: 3\.", name)}
    assert jobs["windows"]["continue-on-error"] is True
    for job in ("tests", "installed"):
        rows = jobs[job]["strategy"]["matrix"]["include"]
        unproven = {(row["os"], row["python"]) for row in rows if row.get("unproven")}
        assert unproven == {(row["os"], row["python"]) for row in rows if _is_unproven(row)}


def _is_unproven(row: dict[str, str]) -> bool:
    return row["os"] != "ubuntu-latest" or row["python"] == "3.14"


def test_the_smoke_test_of_the_installed_package_passes_here() -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / ".ci/smoke.py"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert re.search(r"^https://127\.0\.0\.1:\d+/readyz: 200 ok$", ran.stdout, re.M), ran.stdout + ran.stderr


def test_publishing_needs_no_secret_and_is_off_until_it_is_switched_on() -> None:
    publish = workflow("release.yaml")["jobs"]["publish"]
    assert publish["if"] == "vars.PUBLISH == 'true'"
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yaml").read_text()


def test_the_files_for_other_installers_name_this_program() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "pilothouse validate"
    plugin = yaml.safe_load((ROOT / "deploy/krew/pilothouse.yaml").read_text())["spec"]
    assert {platform["bin"] for platform in plugin["platforms"]} <= {*PROJECT["scripts"]}
    assert set(PROJECT["scripts"].values()) == {"pilothouse.cli.main:main"}


def test_the_action_uses_each_of_its_inputs() -> None:
    text = (ROOT / "deploy/github-action/action.yml").read_text()
    action = yaml.safe_load(text)
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])


def test_the_kubectl_plugin_runs_the_installed_program(tmp_path: Path) -> None:
    program = tmp_path / "pilothouse"
    program.write_text('#!/bin/sh\necho "ran with $*"\n')
    program.chmod(0o755)
    plugin = ROOT / "deploy/krew/kubectl-pilothouse"
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run([plugin, "serve", "--testing"], env=path, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stdout == "ran with serve --testing\n"


def test_the_menu_of_versions_begins_with_the_newest(tmp_path: Path) -> None:
    for name in ("0.9", "0.10", "0.2", "assets"):
        (tmp_path / name).mkdir()
    list_versions(tmp_path)
    menu = json.loads((tmp_path / "versions.json").read_text())
    assert [each["version"] for each in menu] == ["0.10", "0.9", "0.2"]
    assert [each["aliases"] for each in menu] == [["latest"], [], []]
    assert 'url=0.10/"' in (tmp_path / "index.html").read_text()
