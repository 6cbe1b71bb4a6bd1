"""Links between pages, and the anchors that headings have, by the rules of code hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?=[)\s])")
_ELSEWHERE = re.compile(r"^[a-z]+:", re.IGNORECASE)
_FENCED = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$\n?", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)


def without_code(text: str) -> str:
    """Return the text of a page with nothing in the place of its blocks, and dots in that of quoted words."""
    return _CODE.sub(lambda code: "." * len(code[0]), _FENCED.sub("", text))


def links_in(page: Path) -> Iterator[tuple[str, str]]:
    """Yield path and anchor, either of which may be empty, of each link to something in the repository."""
    for link in _LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
        if not _ELSEWHERE.match(link["target"]):
            yield link["target"], (link["anchor"] or "").removeprefix("#")


def with_links(text: str, change: Callable[[str], str]) -> str:
    """Return the text of a page with the path of each such link changed; blocks and quoted words stay as they are."""
    kept = re.compile(
        f"{_FENCED.pattern}|{_CODE.pattern.replace(chr(92) + '1', chr(92) + '3')}|{_LINK.pattern}", _FENCED.flags
    )

    def changed(found: re.Match[str]) -> str:
        target = found["target"]
        if not target or _ELSEWHERE.match(target):
            return found[0]
        return f"{found['before']}{change(target)}{found['anchor'] or ''}"

    return kept.sub(changed, text)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings; the second of the same name has -1, as on code hosts."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        slug = _slug(heading)
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


def dead_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere, as they are written."""
    return [f"{path}#{anchor}" for path, anchor in links_in(page) if not _leads_somewhere(page, path, anchor)]


def _leads_somewhere(page: Path, path: str, anchor: str) -> bool:
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors_of(target)


def _slug(heading: str) -> str:
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
