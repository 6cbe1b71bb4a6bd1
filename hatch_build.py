"""Writes into the package, when it is built or installed editable, the files that are made.

The page of the console is made by `tools/console_page.py` where there is npm. Where there is not, or npm can not fetch
what it needs, the package is built without the page, and the console says how to get it.

What is known of the built-in types is made by `tools/builtin_types/`, from Go's structs, the overlay, and the OpenAPI
definitions in the build dependency kubernetes-validate, which is not needed at run time. Where these contradict each
other, the build fails. The typed kinds of `pilothouse.operator.types` are made of the result.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "pilothouse/machinery/_generated"
TYPED_KINDS = "pilothouse/operator/types"
PAGE = "pilothouse/console/_page"


class MadeFilesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` before it collects files, and for editable installs too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)  # neither the tools nor the package is installed yet
        self._build_page()
        if self.target_name == "wheel":
            self._build_types()

    def _build_page(self) -> None:
        from tools.console_page import NotBuilt, build_page, tell_installer

        try:
            build_page(Path(self.root) / "console", Path(self.root) / PAGE)
        except NotBuilt as reason:
            remedy = "For the console, install again where npm (of Node.js 20 or later) reaches its registry."
            message = f"The page of Pilothouse's console was not built: {reason}. Everything else was. {remedy}"
            self.app.display_warning(message)
            tell_installer(message)

    def _build_types(self) -> None:
        from tools.builtin_types.build import build, published_types
        from tools.builtin_types.overlay import SHIPPED, read_overlay
        from tools.builtin_types.sources import installed_types
        from tools.builtin_types.typed_dicts import write_typed_dicts

        build(published_types(), read_overlay(SHIPPED), Path(self.root) / TARGET)
        write_typed_dicts(installed_types().definitions, Path(self.root) / TYPED_KINDS)
