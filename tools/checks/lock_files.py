"""Check that each package-lock.json belongs to its package.json: the condition under which `npm ci` installs.

python -m tools.checks.lock_files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = ("console", "tools/diagrams")
"""Folders with a package.json of ours."""

_KINDS = ("dependencies", "devDependencies")


def faults_of(folder: Path) -> Iterator[str]:
    """Yield each dependency that the two files declare differently or that the lock file does not resolve."""
    package = json.loads((folder / "package.json").read_text())
    locked: dict[str, Any] = json.loads((folder / "package-lock.json").read_text())["packages"]
    for kind in _KINDS:
        wanted, declared = package.get(kind, {}), locked[""].get(kind, {})
        for name in sorted({*wanted, *declared}):
            if wanted.get(name) != declared.get(name):
                yield f"{name}: package.json has {wanted.get(name)}, package-lock.json has {declared.get(name)}"
            elif not locked.get(f"node_modules/{name}", {}).get("version"):
                yield f"{name}: package-lock.json has no version"


def main() -> int:
    faults = [f"{folder}: {fault}" for folder in FOLDERS for fault in faults_of(ROOT / folder)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print("run `npm install --package-lock-only` in the folder, and commit both files", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
