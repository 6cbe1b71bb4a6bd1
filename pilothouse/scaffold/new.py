"""What each `pilothouse new` writes. A project is whole after every one of them.

The server imports every module below resources and controllers, so that no command has to change a file that is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pilothouse
from pilothouse.builder.kind import plural_of
from pilothouse.scaffold.errors import ScaffoldError
from pilothouse.scaffold.files import File, read, write
from pilothouse.scaffold.names import KindName, package_of
from pilothouse.scaffold.project import Project, project_in
from pilothouse.scaffold.rendering import render

_SERVER = {
    # path                                   template
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "Dockerfile": "Dockerfile",
    ".dockerignore": "dockerignore",
    ".gitignore": "gitignore",
    "{package}/__init__.py": "package.py",
    "{package}/__main__.py": "main.py",
    "{package}/server.py": "server.py",
    "{package}/resources/__init__.py": "resources.py",
    "{package}/controllers/__init__.py": "controllers.py",
    "tests/conftest.py": "conftest.py",
    "tests/test_server.py": "test_server.py",
}
_CONTROLLER = {
    "{package}/controllers/{module}.py": "controller.py",
    "tests/test_{module}_controller.py": "test_controller.py",
}
_SUBRESOURCE = {
    "{package}/resources/{version}/{module}_{function}.py": "subresource.py",
    "tests/test_{version}_{module}_{function}.py": "test_subresource.py",
}


def new_server(folder: Path, group: str) -> list[str]:
    """Make a project in the folder, and return what there is to say. Raises ScaffoldError."""
    there = project_in(folder)
    if there is not None and there.group != group:
        raise ScaffoldError(f"{folder} is the project of {there.group} already")
    project = there or Project(folder, group, package_of(group))
    said = write(folder, list(_rendered(_SERVER, _names(project))))
    if project_in(folder) is None:
        said += _to_add("pyproject.toml", f'[tool.pilothouse]\ngroup = "{group}"\npackage = "{project.package}"')
    return said


def new_resource(project: Project, kind: KindName) -> list[str]:
    """Make one version of a kind. The first one is what is stored; others convert to it."""
    names = _names(project, kind)
    stored = render("resource.py", **names, options=", storage_version=True")
    converted = render("resource.py", **names, options="") + render("conversion.py", **names)
    others = [version for version in project.versions_of(kind) if version != kind.version]
    path = f"{project.package}/resources/{kind.version}"
    content = converted if others else stored
    files = [
        File(f"{path}/__init__.py", render("version.py", **names)),
        File(f"{path}/{kind.module}.py", content, earlier=(stored, converted)),
        File(f"tests/test_{kind.version}_{kind.module}.py", render("test_resource.py", **names)),
    ]
    return [*write(project.folder, files), *_how_to_import(project, f"resources.{kind.version}.{kind.module}")]


def new_controller(project: Project, kind: KindName) -> list[str]:
    """Make a controller of a kind that is there."""
    kind = project.one_version_of(kind)
    said = write(project.folder, list(_rendered(_CONTROLLER, _names(project, kind))))
    path = f"{project.package}/resources/{kind.version}/{kind.module}.py"
    if "ready" not in (read(project.folder / path) or ""):
        said += _to_add(f"Status in {path}", "        ready: bool = False")
    return [*said, *_how_to_import(project, f"controllers.{kind.module}")]


def new_subresource(project: Project, kind: KindName, subresource: str) -> list[str]:
    """Make a subresource of a kind that is there, to which clients POST."""
    kind = project.one_version_of(kind)
    function = subresource.replace("-", "_")
    body = kind.kind + "".join(word.capitalize() for word in subresource.split("-"))
    names = {**_names(project, kind), "subresource": subresource, "function": function, "body": body}
    said = write(project.folder, list(_rendered(_SUBRESOURCE, names)))
    return [*said, *_how_to_import(project, f"resources.{kind.version}.{kind.module}_{function}")]


def _names(project: Project, kind: KindName | None = None) -> dict[str, str]:
    names = {
        "group": project.group,
        "package": project.package,
        "name": f"{project.group.partition('.')[0]}-apiserver",
        "pilothouse_version": pilothouse.__version__,
    }
    if kind is None:
        return names
    return names | {
        "kind": kind.kind,
        "version": kind.version,
        "module": kind.module,
        "plural": plural_of(kind.kind),
    }


def _rendered(templates: Mapping[str, str], names: Mapping[str, str]) -> Iterator[File]:
    for path, template in templates.items():
        yield File(path.format(**names), render(template, **names))


def _how_to_import(project: Project, module: str) -> list[str]:
    """Return what to add to a server that no longer finds its modules by itself."""
    path = f"{project.package}/server.py"
    text = read(project.folder / path) or ""
    line = f"import {project.package}.{module}"
    return [] if "walk_packages" in text or line in text else _to_add(path, line)


def _to_add(where: str, lines: str) -> list[str]:
    return [f"Add to {where}:", "", lines, ""]
