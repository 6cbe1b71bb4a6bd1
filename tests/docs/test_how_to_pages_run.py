"""What the pages show works when it is copied, block by block."""

from __future__ import annotations

from pathlib import Path

import pytest
from documented_commands import do_what_it_shows, name_of, pages_that_run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", pages_that_run("how-to"), ids=name_of)
def test_a_page_shows_what_happens(page: Path) -> None:
    do_what_it_shows(page)
