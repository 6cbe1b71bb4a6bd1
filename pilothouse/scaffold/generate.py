"""Makes docs and manifests of a project from the server that it declares.

`pilothouse new` runs this module in a process of its own, since the project's code changes while it runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.scaffold.errors import ScaffoldError
from pilothouse.scaffold.manifests import Manifests, as_yaml
from pilothouse.scaffold.project import Project, find_project
from pilothouse.scaffold.reference import page
from pilothouse.scaffold.sealed import replace

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer


def write_docs(project: Project, server: APIServer) -> list[str]:
    """Write a page for each kind, and return what there is to say."""
    pages = ((f"docs/{kind.plural}.md", page(kind)) for kind in server.kinds)
    return [line for path, text in pages for line in replace(project.folder, path, text)]


def write_manifests(project: Project, manifests: Manifests) -> list[str]:
    """Write the manifests into their files, and return what there is to say."""
    texts = ((f"manifests/{name}", as_yaml(objects)) for name, objects in manifests.files().items())
    return [line for path, text in texts for line in replace(project.folder, path, text)]


def generate(project: Project) -> list[str]:
    """Make both in another process, and return what it said. Raises ScaffoldError where the code cannot be imported."""
    command = [sys.executable, "-m", "pilothouse.scaffold.generate"]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise ScaffoldError(f"docs and manifests are as they were: {reason.removeprefix('Error: ')}")
    return done.stdout.splitlines()


def main() -> int:
    try:
        project = find_project(Path.cwd())
        server = project.server()
        said = [*write_docs(project, server), *write_manifests(project, Manifests.of(server))]
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    for line in said:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
