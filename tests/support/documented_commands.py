"""Does what a page of the documentation shows, as a test."""

from __future__ import annotations

import re
from pathlib import Path

import kubectl
import pytest
from node_packages import NO_PAGE

from pilothouse.console.page import BUILT
from tools.docs.blocks import UnknownForm, blocks_of
from tools.docs.pages import DOCS, pages
from tools.docs.running.process import run_page

_CONSOLE = re.compile(r"pilothouse (?:console\b|serve .*--console\b)")
_RUN = ("console", "python")


def pages_that_run(*sections: str) -> list[Path]:
    """Return the pages of sections that show something to run; files alone are nothing."""
    return [page for page in pages(*sections) if _shows_something_to_run(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def do_what_it_shows(page: Path) -> None:
    """Fails with the place, and with the output there. Skips a page without the kubectl or console that it needs."""
    commands = [block.text for block in blocks_of(page) if block.language == "console" and not block.no_run]
    if kubectl.BINARY is None and any("kubectl" in text for text in commands):
        pytest.skip(kubectl.MISSING)
    if not (BUILT / "index.html").is_file() and any(_CONSOLE.search(text) for text in commands):
        pytest.skip(NO_PAGE)
    done = run_page(page, capture=True)
    assert done.returncode == 0, done.stderr


def _shows_something_to_run(page: Path) -> bool:
    try:
        return any(block.language in _RUN and not (block.no_run or block.title) for block in blocks_of(page))
    except UnknownForm:
        return True  # and fails when it is run
