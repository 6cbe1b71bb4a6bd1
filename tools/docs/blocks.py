"""The blocks of a page: what is between fences, and what its first line says about it.

Only forms that somebody checks are known. Any other is an error, so that no page shows what nobody has tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = frozenset({"console", "ini", "json", "python", "text", "toml", "yaml"})
"""Languages of blocks without a title. With a title a block is a file, of whatever language."""

_EXAMPLES = "pycon"
"""Examples of docstrings, which have a test of their own: only on pages of the reference."""
_ATTRIBUTES = frozenset({"hl_lines", "linenums", "no-run", "title"})
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_INFO = re.compile(r'^(?P<language>[\w+-]*)(?P<attributes>(?: +[\w-]+="[^"]*")*)$')
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_ITEM = re.compile(r"^ *(?:[-*+]|\d+[.)]) ")


class UnknownForm(Exception):
    """A block that nobody would know how to check; the message begins with its place."""


@dataclass(frozen=True)
class Block:
    """What stands between two fences. `line` is that of its first line of text."""

    page: Path
    line: int
    language: str
    text: str
    title: str = ""
    no_run: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in order. Raises UnknownForm for one that has no form that is known."""
    return [*_blocks(page, page.read_text(encoding="utf-8").splitlines())]


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    reading = enumerate(lines, 1)
    in_list, after_blank = False, True
    for number, line in reading:
        if fence := _FENCE.match(line):
            text = [*_until(fence, reading, f"{page}:{number}")]
            yield _block(page, number + 1, fence[3].strip(), "".join(text))
        elif line.startswith("    ") and after_blank and not in_list:
            raise UnknownForm(f"{page}:{number}: an indented block: write it between fences, with its language")
        elif line.strip() and not line.startswith(" "):
            in_list = bool(_ITEM.match(line)) or (in_list and not after_blank)
        after_blank = not line.strip()


def _until(fence: re.Match[str], reading: Iterator[tuple[int, str]], place: str) -> Iterator[str]:
    """Yield the lines to the closing fence, without the indentation of the opening one."""
    for _, line in reading:
        if line.strip().startswith(fence[2]) and not line.strip().strip(fence[2][0]):
            return
        yield line.removeprefix(fence[1]) + "\n"
    raise UnknownForm(f"{place}: a fence that is not closed")


def _block(page: Path, line: int, info: str, text: str) -> Block:
    said = _INFO.match(info)
    attributes = dict(_ATTRIBUTE.findall(said["attributes"])) if said else {}
    if said is None or not attributes.keys() <= _ATTRIBUTES:
        raise UnknownForm(f'{page}:{line}: ```{info}: only title="…" and no-run="…" may follow the language')
    block = Block(page, line, said["language"], text, attributes.get("title", ""), attributes.get("no-run", ""))
    is_example = block.language == _EXAMPLES and page.parent.name == "reference"
    if not (block.title or is_example or block.language in LANGUAGES):
        known = ", ".join(sorted(LANGUAGES))
        raise UnknownForm(f"{page}:{line}: ```{info}: the language is none of {known}, and there is no title")
    return block
