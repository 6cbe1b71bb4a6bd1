"""Does what a page of the documentation shows, as a test."""

from __future__ import annotations

from pathlib import Path

import kubectl
import pytest

from tools.docs.blocks import UnknownForm, blocks_of
from tools.docs.pages import DOCS, pages
from tools.docs.running.process import run_page

_RUN = ("console", "python")


def pages_that_run(*sections: str) -> list[Path]:
    """Return the pages of sections that show something to run; files alone are nothing."""
    return [page for page in pages(*sections) if _shows_something_to_run(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def do_what_it_shows(page: Path) -> None:
    """Skips where a page needs kubectl, and there is none; fails with the place, and with what was printed there."""
    commands = [block.text for block in blocks_of(page) if block.language == "console" and not block.no_run]
    if kubectl.BINARY is None and any("kubectl" in text for text in commands):
        pytest.skip(kubectl.MISSING)
    done = run_page(page, capture=True)
    assert done.returncode == 0, done.stderr


def _shows_something_to_run(page: Path) -> bool:
    try:
        return any(block.language in _RUN and not (block.no_run or block.title) for block in blocks_of(page))
    except UnknownForm:
        return True  # and fails when it is run
