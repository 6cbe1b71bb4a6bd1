"""An example of an extension server fits on a screen or two, and needs the public packages only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from example_module import EXAMPLES

BUILT = [file for file in sorted(EXAMPLES.glob("*.py")) if "APIServer" in file.read_text()]


@pytest.mark.parametrize("file", BUILT, ids=lambda file: file.name)
def test_an_example_needs_two_modules_at_most(file: Path) -> None:
    imported = re.findall(r"^from (pilothouse\S*) import", file.read_text(), re.MULTILINE)
    assert imported[0] == "pilothouse.builder"
    assert set(imported[1:]) < {"pilothouse.client", "pilothouse.errors"}


def test_a_server_with_a_controller_and_a_status_has_sixty_lines() -> None:
    assert len((EXAMPLES / "flunders.py").read_text().splitlines()) <= 60
    assert all(len(file.read_text().splitlines()) <= 130 for file in BUILT)
