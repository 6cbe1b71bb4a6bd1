"""Public names of a package, imported only when somebody asks for one (PEP 562).

The names stand once, in the package's `__init__.pyi`, where type checkers find them too:

    from pilothouse.client.rest.connect import connect as connect

Neither the stub nor a module that it names is read before somebody asks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of the package, whose `__all__` is what the stub imports.

    A name that was asked for once is an ordinary attribute from then on.
    """

    @cache
    def places() -> dict[str, tuple[str, str]]:
        return _imports_in(Path(str(sys.modules[package].__file__)).with_suffix(".pyi"))

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted(places())
        if name.startswith("__") or name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = places()[name]
        value = getattr(import_module(module), original)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places()})

    return __getattr__, __dir__


def _imports_in(stub: Path) -> dict[str, tuple[str, str]]:
    """Return, for each name that the stub imports, the module that has it and its name there."""
    import ast

    imports = (node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: (node.module or "", alias.name) for node in imports for alias in node.names}
