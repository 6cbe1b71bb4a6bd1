"""One of the examples as a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from kubectl import Kubectl

from pilothouse.testing import BlockingAPI

EXAMPLES = Path(__file__).parents[2] / "examples"

Running: TypeAlias = Callable[[str], AbstractContextManager[tuple[BlockingAPI, Kubectl]]]
"""Runs the example of that name; see tests/examples/conftest.py."""


def example_module(name: str) -> ModuleType:
    """Import examples/NAME.py under a name of its own, anew each time."""
    spec = spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are looked up there
    spec.loader.exec_module(module)
    return module
