"""The console's commands where there is nothing to show, or nothing to show it with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.cli.main import main

_WITHOUT_THE_PAGE = """
import sys
from pathlib import Path
from pilothouse.cli.main import main
from pilothouse.console import page
page.BUILT = Path("missing")
sys.exit(main(sys.argv[1:]))
"""


def test_without_a_cluster_it_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["console", "--no-open", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("Error: ")


@pytest.mark.parametrize("command", [["console", "--no-open"], ["serve", "--console", "--data-dir=data"]])
def test_an_installation_without_the_page_says_before_anything_starts_how_to_get_it(
    command: list[str], tmp_path: Path
) -> None:
    words = [sys.executable, "-c", _WITHOUT_THE_PAGE, *command]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert line.startswith("Error: this Pilothouse was installed without the page of its console: install ")
    assert list(tmp_path.iterdir()) == []
