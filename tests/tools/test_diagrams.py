"""The diagrams of the documentation are what their sources say, small, and shown somewhere."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from patience import PATIENCE

REPOSITORY = Path(__file__).parents[2]
DIAGRAMS = REPOSITORY / "docs" / "diagrams"
TOOL = REPOSITORY / "tools" / "diagrams"
STYLE = DIAGRAMS / "style.d2"
SOURCES = sorted(path for path in DIAGRAMS.glob("*.d2") if path != STYLE)
MOST_BYTES = 60_000
WIDEST = 900
"""Pixels: at a width of 700 the text is still readable."""


def test_each_picture_has_a_source() -> None:
    assert {path.stem for path in DIAGRAMS.glob("*.svg")} == {path.stem for path in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_picture_was_drawn_from_its_source(source: Path) -> None:
    picture = source.with_suffix(".svg").read_bytes()
    drawn = ElementTree.fromstring(picture)
    assert drawn.get("data-source") == _digest(source), "cd tools/diagrams && npm ci && npm run render"
    assert drawn.findtext("{*}title") == source.read_text().splitlines()[0].removeprefix("# ")
    assert len(picture) < MOST_BYTES
    assert int(drawn.get("width", "0")) <= WIDEST
    assert b"@font-face" not in picture


def test_each_picture_is_shown_on_a_page() -> None:
    shown = {name for page in (REPOSITORY / "docs").rglob("*.md") for name in _shown_on(page)}
    assert {path.stem for path in SOURCES} <= shown


def test_every_colour_has_one_for_the_dark() -> None:
    colours = re.findall(r'^  [\w-]+: "#[0-9a-f]{6}"(.*)$', STYLE.read_text(), re.MULTILINE)
    assert colours
    assert all(re.fullmatch(r" +# dark #[0-9a-f]{6}", rest) for rest in colours)


@pytest.mark.skipif(
    shutil.which("node") is None or not (TOOL / "node_modules").exists(),
    reason="needs node and the packages of tools/diagrams",
)
def test_pictures_are_what_their_sources_render_to() -> None:
    checked = subprocess.run(
        ["node", "render.mjs", "--check"], cwd=TOOL, capture_output=True, text=True, timeout=PATIENCE
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _digest(source: Path) -> str:
    return hashlib.sha256(STYLE.read_bytes() + source.read_bytes()).hexdigest()


def _shown_on(page: Path) -> list[str]:
    return re.findall(r"diagrams/([\w-]+)\.svg", page.read_text())
