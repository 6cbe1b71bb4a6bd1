"""Generates docs and manifests from a project's server.

`pilothouse new` runs this module in a separate process, because the project's code has just changed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.scaffold.files import replace
from pilothouse.scaffold.manifests import Manifests, as_yaml
from pilothouse.scaffold.names import ScaffoldError
from pilothouse.scaffold.project import Project, find_project
from pilothouse.scaffold.reference import page

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer


def write_docs(project: Project, server: APIServer) -> list[str]:
    """Write a page for each kind, and return the lines to print."""
    pages = ((f"docs/{kind.plural}.md", page(kind)) for kind in server.kinds)
    return [line for path, text in pages for line in replace(project.folder, path, text)]


def write_manifests(project: Project, manifests: Manifests) -> list[str]:
    """Write the manifests, and return the lines to print."""
    texts = ((f"manifests/{name}", as_yaml(objects)) for name, objects in manifests.files().items())
    return [line for path, text in texts for line in replace(project.folder, path, text)]


def generate(project: Project) -> list[str]:
    """Generate docs and manifests in another process, and return its output lines. Raises ScaffoldError."""
    return _run(project.folder, "docs and manifests", "pilothouse.scaffold.generate")


def generate_operator(folder: Path, package: str) -> list[str]:
    """Generate the manifests of an operator in another process, and return its output lines. Raises ScaffoldError."""
    words = ("generate", "manifests", f"{package}.manager:new_manager", "--output", "manifests")
    return _run(folder, "manifests", "pilothouse.cli.main", *words)


def _run(folder: Path, things: str, module: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", module, *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        reason = result.stderr.strip().rpartition("\n")[2]
        raise ScaffoldError(f"{things} were not updated: {reason.removeprefix('Error: ')}")
    return result.stdout.splitlines()


def main() -> int:
    try:
        project = find_project(Path.cwd())
        server = project.server()
        lines = [*write_docs(project, server), *write_manifests(project, Manifests.of(server))]
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
