"""`pilothouse console` where there is nothing to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.cli.main import main


def test_without_a_cluster_it_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "--no-open", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("Error: ")
