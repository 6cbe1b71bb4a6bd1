"""Every file and folder that the documentation names is there, so that nobody is sent to where something used to be."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest

from tools.docs.links import dead_links

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    chain(
        ROOT.glob("*.md"),
        (ROOT / "docs").rglob("*.md"),
        (ROOT / "benchmarks").rglob("*.md"),
    )
)
FOLDERS = ("benchmarks", "console/src", "console/test", "deploy", "docs", "examples", "pilothouse", "tests", "tools")

_PART = r"(?:[\w.-]+|<\w+>|\*)"
_QUOTED = re.compile(rf"`({_PART}/(?:{_PART}/)*{_PART}?)`")
_FILE = re.compile(rf"(?<![\w/<.-])((?:{_PART}/)*{_PART}\.(?:pyi?|toml))\b")
_FENCED = re.compile(r"^( *)(`{3,}).*?^\1\2$", re.MULTILINE | re.DOTALL)
"""What is run is not looked at here. It may write files of its own, with a title."""
_TITLE = re.compile(r'^ *`{3,}.* title="([^"]+)"', re.MULTILINE)


@cache
def _places() -> list[PurePosixPath]:
    """Return all files and folders, from the root of the repository."""
    found = chain(ROOT.glob("*"), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    return [PurePosixPath(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts]


@cache
def _exists(name: str) -> bool:
    """Whether there is such a path, in whatever folder the text speaks of; `<name>` stands for any."""
    pattern = re.sub(r"<\w+>", "*", re.sub(r"^(\.\./)+", "", name).rstrip("/"))
    return any(place.match(pattern) for place in _places())


def _is_ours(name: str) -> bool:
    """A quoted path may be one of a URL, of upstream or of a data directory: ours begin with a folder of ours."""
    packages = {path.name for path in (ROOT / "pilothouse").iterdir()}
    return (name.endswith("/") and not name.startswith(".")) or name.partition("/")[0] in {*FOLDERS, *packages}


def _named_in(text: str) -> set[str]:
    return {*filter(_is_ours, _QUOTED.findall(text)), *_FILE.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_only_what_is_there(page: Path) -> None:
    text = page.read_text()
    written = set(_TITLE.findall(text))
    assert {name for name in _named_in(_FENCED.sub("", text)) if not _exists(name)} - written == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_paths_are_found_in_the_text() -> None:
    """Or else the tests above say nothing."""
    assert {"apiserver/filters/", "kube/<group>/<resource>.py"} <= _named_in((ROOT / "ARCHITECTURE.md").read_text())
    assert not _exists("apiserver/nonsense/")
    assert not _exists("kube/<group>/nonsense.py")
