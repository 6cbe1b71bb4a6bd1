"""Pages have the form that lets them be checked: known blocks, a footer, and few things that cannot be run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented_commands import name_of

from tools.docs.blocks import UnknownForm, blocks_of
from tools.docs.pages import DOCS, pages
from tools.docs.running.forms import check_form

PAGES = pages()
MOST_THAT_IS_NOT_RUN = 24
"""Blocks that need the network, a container or another machine, in all pages together."""

_FOOTER = re.compile(r"\n\*How it was tested: [^\n]+(?:\n[^\n]+)*\*\n$")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_how_it_was_tested(page: Path) -> None:
    assert _FOOTER.search(page.read_text()), "the last paragraph of a page is *How it was tested: …*"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_what_they_say(page: Path) -> None:
    for block in blocks_of(page):
        check_form(block)


def test_little_is_shown_that_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    left_out = [(block.place, block.no_run) for page in PAGES for block in blocks_of(page) if block.no_run]
    for place, reason in left_out:
        print(f"{place}: {reason}")
    assert len(left_out) <= MOST_THAT_IS_NOT_RUN, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```\na\n```\n", "the language is none of"),
        ("```go\na\n```\n", "the language is none of"),
        ("```yaml name=a\na\n```\n", "may follow the language"),
        ('```yaml size="a"\na\n```\n', "may follow the language"),
        ("```text\na\n", "not closed"),
        ("Words:\n\n    $ ls\n", "an indented block"),
    ],
)
def test_a_block_that_nobody_knows_how_to_check_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(UnknownForm, match=why):
        blocks_of(tmp_path / "page.md")


def test_blocks_of_lists_are_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text('1. Words:\n\n    ```go title="a.go"\n    package a\n    ```\n')
    (block,) = blocks_of(tmp_path / "page.md")
    assert (block.language, block.title, block.text, block.line) == ("go", "a.go", "package a\n", 4)


def test_there_are_pages() -> None:
    """Or else the tests above say nothing."""
    assert DOCS / "reference" / "deviations.md" in PAGES
