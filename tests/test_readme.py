"""What the README shows works when it is copied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_code_of_the_readme_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", BLOCKS)
def test_the_readme_uses_public_names_only(block: str) -> None:
    imported = set(re.findall(r"^from (pilothouse\S*) import", block, re.MULTILINE))
    assert imported <= {"pilothouse.builder", "pilothouse.client", "pilothouse.errors", "pilothouse.testing"}
    assert imported
