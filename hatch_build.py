"""Writes into the package, when it is built or installed editable, what is made and not written.

The page of the console is made from `console/` where there is npm; where there is not, or it can not fetch what it
needs, the package is built without it, and the console says how to get it.

What is known of the built-in types is made by `tools/builtin_types/`, from Go's structs, the overlay, and the OpenAPI
definitions in the build dependency kubernetes-validate, which is not needed at run time. Where these contradict each
other, the build fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "pilothouse/machinery/_generated"
PAGE = "pilothouse/console/_page"
_QUICKLY = ["--prefer-offline", "--fetch-retries=1", "--fetch-timeout=20000"]
_FETCH = ["install", "--no-save", "--no-audit", "--no-fund", *_QUICKLY]
"""Not `npm ci`: it refuses a lock file that lacks the parts of Rollup and esbuild for other platforms."""
_PATIENCE = 120
"""Seconds: where npm reaches no registry, an install shall not wait for it long."""


class MadeFilesHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` before it collects files, and for editable installs too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._build_page(Path(self.root) / "console", Path(self.root) / PAGE / "index.html")
        if self.target_name == "wheel":
            self._build_types()

    def _build_page(self, sources: Path, page: Path) -> None:
        npm = shutil.which("npm")
        if npm is None or not sources.is_dir() or _is_newer(page, sources):
            return
        try:
            for words in (_FETCH, ["run", "build"]):
                subprocess.run([npm, *words], cwd=sources, check=True, timeout=_PATIENCE, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"The page of the console was not built: {error}")

    def _build_types(self) -> None:
        sys.path.insert(0, self.root)  # neither the tools nor the package is installed yet
        from tools.builtin_types.build import build
        from tools.builtin_types.overlay import SHIPPED, read_overlay
        from tools.builtin_types.sources import published_types

        build(published_types(), read_overlay(SHIPPED), Path(self.root) / TARGET)


def _is_newer(page: Path, sources: Path) -> bool:
    """Return whether no source was changed after the page was built."""
    entries = (entry for entry in sources.iterdir() if entry.name != "node_modules")
    files = (file for entry in entries for file in (entry.rglob("*") if entry.is_dir() else [entry]))
    return page.is_file() and all(file.stat().st_mtime <= page.stat().st_mtime for file in files)
