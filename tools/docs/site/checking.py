"""Looks at the site that was built as a visitor does: every link, picture, style and script of it is there."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_REFERENCES = {"a": "href", "img": "src", "link": "href", "script": "src", "source": "src"}
_ELSEWHERE_IS_FETCHED = {"img", "link", "script", "source"}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := attributes.get(name)))
        if (name := _REFERENCES.get(tag)) and (target := attributes.get(name)):
            self.references.append((tag, target))


def problems_of(site: Path) -> list[str]:
    """Return each reference that leads nowhere, and each that would be fetched from another machine."""
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    return [f"{page.relative_to(site)}: {said}" for page in pages for said in _problems(site, page)]


def _problems(site: Path, page: Path) -> list[str]:
    found = []
    for tag, reference in _read(page).references:
        parts = urlsplit(reference)
        if parts.scheme or parts.netloc:
            if tag in _ELSEWHERE_IS_FETCHED:
                found.append(f"{reference} is fetched from elsewhere")
        elif not _is_there(site, page, unquote(parts.path), unquote(parts.fragment)):
            found.append(f"{reference} leads nowhere")
    return found


def _is_there(site: Path, page: Path, path: str, anchor: str) -> bool:
    target = page if not path else (site / path.lstrip("/") if path.startswith("/") else page.parent / path)
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return False
    return anchor in ("", "__skip", "__toc") or target.suffix != ".html" or anchor in _read(target).anchors


@cache
def _read(page: Path) -> _Page:
    return _Page(page.read_text(encoding="utf-8"))
