"""Commands that add to an installation are right for the way in which it was made."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from pilothouse.machinery import installation
from pilothouse.machinery.installation import extra_command, page_remedy, source_requirement

PIP = [sys.executable, "-m", "pip", "install"]
WHEEL = {"url": "file:///wheels/pilothouse-1.0-py3-none-any.whl", "archive_info": {}}
REPOSITORY = {"url": "https://example.com/it.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The metadata of an installation from an index."""
    metadata = """Metadata-Version: 2.1
Name: pilothouse
Version: 1.0
Requires-Dist: always>=1
Requires-Dist: aetcd>=1.0; extra == 'etcd'
Requires-Dist: grpcio>=1.60; (python_version > "3") and extra == "etcd"
Requires-Dist: other; extra == 'etcd-not'
"""
    (tmp_path / "METADATA").write_text(metadata)
    monkeypatch.setattr(installation, "distribution", lambda name: Distribution.at(tmp_path))
    monkeypatch.setattr(installation, "find_spec", lambda name: object())
    return tmp_path


def from_source(installed: Path, source: dict[str, Any]) -> None:
    (installed / "direct_url.json").write_text(json.dumps(source))


def test_packages_of_an_extra_are_named_whatever_pilothouse_was_installed_from(installed: Path) -> None:
    assert shlex.split(extra_command("etcd")) == [*PIP, "aetcd>=1.0", "grpcio>=1.60"]


def test_an_environment_without_pip_is_one_of_uv(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    assert extra_command("etcd").startswith(f"uv pip install --python {shlex.quote(sys.executable)} ")


@pytest.mark.parametrize(("recorded", "flags"), [({"editable": True}, ["-e"]), ({}, [])])
def test_a_clone_is_installed_again_as_it_was(
    installed: Path, tmp_path: Path, recorded: dict[str, Any], flags: list[str]
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    from_source(installed, {"url": clone.as_uri(), "dir_info": recorded})
    before, _, command = page_remedy().partition(": ")
    assert before == "install npm (it comes with Node.js 20 or later) and, where it reaches its registry, run"
    assert shlex.split(command) == [*PIP, "--force-reinstall", "--no-deps", *flags, str(clone)]


@pytest.mark.parametrize("source", [{}, WHEEL, REPOSITORY, {"url": "file:///gone", "dir_info": {}}])
def test_without_a_clone_a_wheel_with_the_page_is_needed(installed: Path, source: dict[str, Any]) -> None:
    from_source(installed, source)
    assert page_remedy().startswith("install a wheel that has the page, which `pip wheel --no-deps ")
    assert page_remedy().endswith(" install --force-reinstall --no-deps dist/pilothouse-*.whl")


def test_sources_that_were_never_installed_are_installed_from_their_folder(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    root = Path(__file__).parents[2]
    assert shlex.split(extra_command("etcd")) == [*PIP, f"{root}[etcd]"]
    assert page_remedy().endswith(f" {shlex.quote(str(root))}")


@pytest.mark.parametrize("extra", ["etcd", "kms", "tracing"])
def test_this_installation_knows_the_packages_of_its_extras(extra: str) -> None:
    assert any("grpc" in word for word in shlex.split(extra_command(extra)))


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        ({}, []),
        (WHEEL, ["/wheels/pilothouse-1.0-py3-none-any.whl"]),
        (REPOSITORY, ["git+https://example.com/it.git@1"]),
        (
            {"url": "https://example.com/pilothouse-1.0.tar.gz", "archive_info": {}},
            ["https://example.com/pilothouse-1.0.tar.gz"],
        ),
    ],
)
def test_another_environment_gets_the_same_pilothouse(
    installed: Path, source: dict[str, Any], requirement: list[str]
) -> None:
    if source:
        from_source(installed, source)
    assert source_requirement() == requirement


@pytest.mark.parametrize(("recorded", "flags"), [({"editable": True}, ["-e"]), ({}, [])])
def test_another_environment_gets_the_same_clone(
    installed: Path, tmp_path: Path, recorded: dict[str, Any], flags: list[str]
) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    from_source(installed, {"url": clone.as_uri(), "dir_info": recorded})
    assert source_requirement() == [*flags, str(clone)]
