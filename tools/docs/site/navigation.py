"""The order of the pages: that of the links in the index of each section. There is no other list to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.docs.links import links_in
from tools.docs.pages import DOCS, SECTIONS

_TITLES = {"how-to": "How-to"}


def navigation() -> list[Any]:
    """Return the navigation as the generator has it in its configuration."""
    top: list[Any] = [{"Home": "index.md"}]
    for section in SECTIONS:
        if (DOCS / section / "index.md").exists():
            title = _TITLES.get(section, section.capitalize())
            top.append({title: [f"{section}/index.md", *(f"{section}/{page}" for page in listed(section))]})
    top.extend({_title(DOCS / page): page} for page in _beside_the_sections())
    top.append({"Changelog": "changelog.md"})
    return top


def listed(section: str) -> list[str]:
    """Return the pages of a section that its index leads to, in order."""
    folder = DOCS / section
    found = dict.fromkeys(path for path, _ in links_in(folder / "index.md"))
    return [path for path in found if path.endswith(".md") and (folder / path).parent == folder and path != "index.md"]


def unlisted() -> list[Path]:
    """Return the pages that are in a section, and that its index does not lead to."""
    return [
        page
        for section in SECTIONS
        for page in sorted((DOCS / section).glob("*.md"))
        if page.name not in {"index.md", *listed(section)}
    ]


def _beside_the_sections() -> list[str]:
    return [page.name for page in sorted(DOCS.glob("*.md")) if page.name != "index.md"]


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
