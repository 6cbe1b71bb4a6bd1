"""A registry keeps its cache and its objects to itself: others would depend on how it works, not on what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pilothouse

_ROOT = Path(pilothouse.__file__).parent
_OWN = (_ROOT / "apiserver" / "registry", _ROOT / "apiserver" / "storage")


def _reaching_through() -> Iterator[str]:
    for file in _ROOT.rglob("*.py"):
        source = file.read_text()
        if ".cacher" not in source or any(file.is_relative_to(own) for own in _OWN):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and node.attr == "cacher":
                yield f"{file.relative_to(_ROOT)}:{node.lineno}"


def test_nobody_reaches_through_a_registry_to_its_watch_cache() -> None:
    assert list(_reaching_through()) == []
