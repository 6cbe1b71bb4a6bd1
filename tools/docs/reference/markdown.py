"""Markdown that code hosts and the site read alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNQUOTED = re.compile(r"(`[^`]*`)|[^`]+")
MADE = "<!-- Made by `python -m tools.docs reference`. -->"


def page(title: str, *parts: str, tested: str) -> str:
    """Return a whole page; parts are paragraphs, tables and sections."""
    return "\n\n".join([f"# {title}", MADE, *filter(None, parts), f"*How it was tested: {tested}*"]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell(text) for text in row] for row in rows)]
    return "\n".join("|" + "|".join(f" {text} " if text else " " for text in line) + "|" for line in lines)


def cell(text: str) -> str:
    """Return text that is one line, and has no markup but quotes and links."""
    words = " ".join(text.split()).replace("|", "\\|")
    return _UNQUOTED.sub(lambda part: part[1] or part[0].replace("<", "&lt;").replace("*", "\\*"), words)


def code(text: str) -> str:
    return f"`{text}`" if text else ""
