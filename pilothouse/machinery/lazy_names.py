"""Lazy public names of a package (PEP 562).

The names are listed once, in the package's `__init__.pyi`, which type checkers read too:

    from pilothouse.client.rest.connect import connect as connect

Neither the stub nor the modules in it are read before the first access.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the package; `__all__` lists the names imported by the stub.

    After the first access, a name is an ordinary attribute.
    """

    @cache
    def sources() -> dict[str, tuple[str, str]]:
        return _imports_in(Path(str(sys.modules[package].__file__)).with_suffix(".pyi"))

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted(sources())
        if name.startswith("__") or name not in sources():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = sources()[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *sources()})

    return __getattr__, __dir__


def _imports_in(stub: Path) -> dict[str, tuple[str, str]]:
    """Return name → (module, name in that module) for every import of the stub."""
    import ast

    imports = (node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: (node.module or "", alias.name) for node in imports for alias in node.names}
