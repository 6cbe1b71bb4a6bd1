"""A project on disk: `[tool.pilothouse]` of its pyproject.toml, and the server of its package."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scaffold.names import KindName, ScaffoldError, check_group, package_of

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer


@dataclass(frozen=True, slots=True)
class Project:
    folder: Path
    group: str
    package: str

    def versions_of(self, kind: KindName) -> list[str]:
        """Return the versions for which the kind has a file."""
        files = (self.folder / self.package / "resources").glob(f"*/{kind.module}.py")
        return sorted(file.parent.name for file in files)

    def one_version_of(self, kind: KindName) -> KindName:
        """Return the kind with its version. Raises ScaffoldError if the kind does not exist or has several versions."""
        versions = self.versions_of(kind)
        if not versions or (kind.version and kind.version not in versions):
            wanted = f"{kind.version or 'v1alpha1'}/{kind.kind}"
            raise ScaffoldError(f"{kind.kind} does not exist: create it with `pilothouse new resource {wanted}`")
        if not kind.version and len(versions) > 1:
            named = ", ".join(f"{version}/{kind.kind}" for version in versions)
            raise ScaffoldError(f"{kind.kind} has several versions: name one of {named}")
        return KindName(kind.kind, kind.version or versions[0])

    def server(self) -> APIServer:
        """Import the project's code, and return its server. Raises ScaffoldError."""
        sys.path.insert(0, str(self.folder))
        try:
            server: APIServer = import_module(f"{self.package}.server").server
        except (Exception, SystemExit) as error:
            raise ScaffoldError(f"cannot import {self.package}.server: {type(error).__name__}: {error}") from error
        return server


def find_project(start: Path) -> Project:
    """Return the project that contains `start`: the nearest pyproject.toml with [tool.pilothouse]. Raises
    ScaffoldError.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (project := project_in(folder)) is not None:
            return project
    raise ScaffoldError(f"{start.resolve()} is not in a project: no pyproject.toml here or above has [tool.pilothouse]")


def project_in(folder: Path) -> Project | None:
    """Return the project of this folder; None if it is not a project. Raises ScaffoldError."""
    file = folder / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("pilothouse")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ScaffoldError(f"cannot read {file}: {error}") from error
    if table is None:
        return None
    if not isinstance(table, dict) or not isinstance(table.get("group"), str):
        raise ScaffoldError(f"{file}: [tool.pilothouse] must name the group of the server")
    group = check_group(table["group"])
    return Project(folder, group, str(table.get("package") or package_of(group)))
