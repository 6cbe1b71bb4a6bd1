"""The pages that are made from the code say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.links import anchors_of, dead_links
from tools.docs.pages import ROOT
from tools.docs.reference.python_api import prose, python_page
from tools.docs.site.navigation import navigation, unlisted


def test_the_pages_are_what_would_be_written() -> None:
    """In a process of its own: others register metrics, too."""
    words = [sys.executable, "-m", "tools.docs", "reference", "--check"]
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_examples_of_a_docstring_are_blocks() -> None:
    said = "Does it.\n\n>>> 1\n1\n\nAnd:\n    more\n"
    assert prose(said) == "Does it.\n\n```pycon\n>>> 1\n1\n```\n\nAnd:\nmore"


def test_signatures_have_types_and_no_addresses() -> None:
    page = python_page("pilothouse.client")
    assert "def connect(config: ClientConfig, *, clock: Clock = …) -> Client\n" in page
    assert "| `async wait_synced() -> None` |" in page
    assert not [line for line in page.splitlines() if line.startswith(("class ", "def ", "| `")) and "=<" in line]


def test_every_page_is_reached_from_the_index_of_its_section() -> None:
    assert unlisted() == []
    assert {"Home": "index.md"} in navigation()


@pytest.mark.parametrize("link", ["b.md", "#nowhere", "a.md#nowhere", "../a.md"])
def test_a_dead_link_is_found(link: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# A\n\n[well](#a), [not]({link}), `[quoted](c.md)`\n")
    assert len(dead_links(tmp_path / "a.md")) == 1


def test_anchors_are_those_of_code_hosts(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# What `a` is, and why\n\n```text\n# no heading\n```\n\n## A & b\n\n## A & b\n")
    assert anchors_of(tmp_path / "a.md") == {"what-a-is-and-why", "a--b", "a--b-1"}
