"""The console's commands where there is nothing to show, or nothing to show it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.cli.main import main
from pilothouse.console import page


@pytest.fixture
def no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path / "missing")


def test_without_a_cluster_it_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "--no-open", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("Error: ")


@pytest.mark.usefixtures("no_page")
@pytest.mark.parametrize("command", [["console", "--no-open"], ["serve", "--console", "--data-dir=data"]])
def test_an_installation_without_the_page_says_before_anything_starts_how_to_get_it(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert line.startswith("Error: this Pilothouse was installed without the page of its console: install ")
    assert list(tmp_path.iterdir()) == []
