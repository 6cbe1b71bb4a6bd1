"""Writes what is known of the built-in types into the package when it is built or installed editable.

`tools/builtin_types/` does it, from Go's structs, the overlay, and the OpenAPI definitions in the build dependency
kubernetes-validate, which is not needed at run time. Where these contradict each other, the build fails.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "pilothouse/machinery/_generated"


class BuiltinTypesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` before it collects the wheel's files, and for editable installs too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)  # neither the tools nor the package is installed yet
        from tools.builtin_types.build import build
        from tools.builtin_types.overlay import SHIPPED, read_overlay
        from tools.builtin_types.sources import published_types

        build(published_types(), read_overlay(SHIPPED), Path(self.root) / TARGET)
