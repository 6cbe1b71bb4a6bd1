"""How to install Pilothouse is said on one page, so that one page changes when an index has the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.docs.pages import DOCS, ROOT

INSTALL = DOCS / "how-to" / "install.md"
PLACES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy", "docs", "examples", "pilothouse")
_COMMAND = re.compile(r"\b(?:pip3?|pipx|uv(?: tool| pip)?) (?:install|download|add)\b([^&|;]*)")
_BY_NAME = re.compile(r"""(?<![\w./@-])pilothouse(?:\[[^\]]*\])?(?=['"`\s]|[=<>~!;,)]|$)""")


def by_name(line: str) -> bool:
    """Return whether a line installs the package by its name, from an index."""
    command = _COMMAND.search(line)
    return bool(command and "--no-index" not in line and _BY_NAME.search(command[1]))


def texts() -> Iterator[Path]:
    for place in PLACES:
        path = ROOT / place
        files = path.rglob("*") if path.is_dir() else [path]
        yield from (
            file for file in files if file.is_file() and not {"__pycache__", "_page", "_generated"} & {*file.parts}
        )


def test_only_one_page_installs_from_an_index() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path != INSTALL and path.suffix not in (".png", ".svg")
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if by_name(line)
    ]
    assert found == [], "no index has the package: link to docs/how-to/install.md, or use machinery/installation.py"


def test_that_page_does() -> None:
    assert [line for line in INSTALL.read_text().splitlines() if by_name(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$ pip install pilothouse", True),
        ("`pip install 'pilothouse[etcd]'`.", True),
        ("pip install -q pilothouse[pytest]", True),
        ("pip install pilothouse==0.2.0 && pilothouse serve", True),
        ("- run: pip install -r requirements.txt 'pilothouse[etcd, kms]'", True),
        ("uv add pilothouse", True),
        ("pip download --dest wheels 'pilothouse[etcd,pytest]'", True),
        ("/opt/pilothouse/bin/pip install .", False),
        ("pip install ./pilothouse", False),
        ("pip install wheels/pilothouse-*.whl && pilothouse validate manifests", False),
        ("pip install --no-index --find-links wheels 'pilothouse[etcd]'", False),
    ],
)
def test_installing_by_name_is_recognized(line: str, expected: bool) -> None:
    assert by_name(line) is expected
