"""Every path of docs/concepts/kubernetes-names.md exists, and every name behind a path is defined in the file."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pilothouse"
PAGE = ROOT / "docs" / "concepts" / "kubernetes-names.md"

_ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
_PLACE = re.compile(r"`([\w/]+(?:\.pyi?|/))(?::([\w.]+))?`")
_HEADERS = {"Upstream", "---"}

_ROWS = [cells for cells in _ROW.findall(PAGE.read_text()) if cells[0] not in _HEADERS]
_PLACES = sorted({place for row in _ROWS for cell in row[1:] for place in _PLACE.findall(cell)})


@cache
def _defined_in(file: Path) -> set[str]:
    """Return the top-level names of a module, and the members of its classes as `Class.member`."""
    return {name for node in ast.parse(file.read_text()).body for name in _names(node)}


def _names(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.ClassDef(name=name, body=body):
            return {name, *(f"{name}.{member}" for part in body for member in _names(part))}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


@pytest.mark.parametrize(("path", "name"), _PLACES)
def test_place_of_upstreams_name_exists(path: str, name: str) -> None:
    place = PACKAGE / path
    assert place.is_dir() if path.endswith("/") else place.is_file(), f"{path} does not exist"
    assert not name or name in _defined_in(place), f"{path} does not define {name}"


def test_every_row_leads_somewhere() -> None:
    assert [row[0] for row in _ROWS if not _PLACE.search(row[1]) and row[1] != "not implemented"] == []


def test_names_of_upstream_appear_once_per_system() -> None:
    for system in PAGE.read_text().split("\n## ")[1:]:
        names = [name for row in _ROW.findall(system) for name in re.findall(r"`([^`]+)`", row[0])]
        assert {name for name in names if names.count(name) > 1} - {"Run", "PathRecorderMux"} == set()


def test_rows_are_found() -> None:
    assert len(_ROWS) > 100
    assert ("aggregator/server.py", "Aggregator") in _PLACES
