"""Puts the pages where the generator finds them, in the form that it wants."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

from tools.docs.links import with_links
from tools.docs.pages import DOCS, ROOT
from tools.docs.site.sources import page_for, text_for

CHANGELOG = ROOT / "CHANGELOG.md"
_NO_RUN = re.compile(r'^( *`{3,}.*?) no-run="[^"]*"', re.MULTILINE)
_FOOTER = re.compile(r"\n(\*How it was tested: .*\*)\n$", re.DOTALL)


def stage(folder: Path) -> None:
    """Copy `docs/` into a folder, and a page for all of the repository that its pages lead to."""
    shutil.copytree(DOCS, folder)
    wanted: set[Path] = set()
    for page in sorted(folder.rglob("*.md")):
        original = DOCS / page.relative_to(folder)
        page.write_text(_for_the_site(original, wanted))
    (folder / CHANGELOG.name.lower()).write_text(_for_the_site(CHANGELOG, wanted, at=DOCS))
    for target in wanted:
        page = folder / page_for(target)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text_for(target))


def _for_the_site(page: Path, wanted: set[Path], *, at: Path | None = None) -> str:
    """Return the text of a page, which the site has in the folder `at`, or in its own."""
    text = _NO_RUN.sub(r"\1", page.read_text(encoding="utf-8"))
    text = _FOOTER.sub(r"\n---\n\n\1\n", text)
    return with_links(text, lambda path: _led_to_a_page(page, path, wanted, at or page.parent))


def _led_to_a_page(page: Path, path: str, wanted: set[Path], at: Path) -> str:
    """Return a link as it is, or, where it leaves `docs/` or leads to a folder, one to the page that shows it."""
    target = (page.parent / path).resolve()
    if target.is_relative_to(DOCS):
        path = os.path.relpath(target, at)
        return f"{path}/index.md" if target.is_dir() else path
    if not target.exists() or not target.is_relative_to(ROOT):
        return path
    wanted.add(target)
    here = PurePosixPath(at.relative_to(DOCS).as_posix())
    return os.path.relpath(page_for(target), here)
