"""The pages of the documentation."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SECTIONS = ("start", "tutorials", "how-to", "concepts", "reference", "decisions")
"""The folders of `docs/`, in the order of the site."""


def pages(*sections: str) -> list[Path]:
    """Return all pages, or those of some sections, in an order that stays the same."""
    folders = [DOCS / section for section in sections] or [DOCS]
    return sorted(page for folder in folders for page in folder.rglob("*.md"))
