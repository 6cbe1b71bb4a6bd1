"""Files of each `pilothouse new` command. The project is complete after every command.

The server imports every module of resources and controllers, so that no command changes an existing file.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

import pilothouse
from pilothouse.builder.resource import plural_of
from pilothouse.machinery.installation import source_requirement
from pilothouse.scaffold.files import File, read, write
from pilothouse.scaffold.names import KindName, OperatorName, ScaffoldError, package_of
from pilothouse.scaffold.project import Project, project_in

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
_OPERATOR = {
    "pyproject.toml": "operator_pyproject.toml",
    "README.md": "operator_README.md",
    "Dockerfile": "operator_Dockerfile",
    ".dockerignore": "dockerignore",
    ".gitignore": "operator_gitignore",
    ".github/workflows/ci.yaml": "operator_ci.yaml",
    "{package}/__init__.py": "operator_package.py",
    "{package}/__main__.py": "operator_main.py",
    "{package}/kinds.py": "operator_kinds.py",
    "{package}/manager.py": "operator_manager.py",
    "{package}/reconciler.py": "operator_reconciler.py",
    "tests/test_{module}.py": "operator_test.py",
}
_CONTROLLER = {
    "{package}/controllers/{controller}.py": "controller.py",
    "tests/test_{controller}_controller.py": "test_controller.py",
}
_SUBRESOURCE = {
    "{package}/resources/{version}/{module}_{function}.py": "subresource.py",
    "tests/test_{version}_{module}_{function}.py": "test_subresource.py",
}

_FOLDER = "templates"


def new_server(folder: Path, group: str) -> list[str]:
    """Create a project in the folder, and return the lines to print. Raises ScaffoldError."""
    existing = project_in(folder)
    if existing is not None and existing.group != group:
        raise ScaffoldError(f"{folder} is the project of {existing.group} already")
    project = existing or Project(folder, group, package_of(group))
    lines = write(folder, list(_render_all(_SERVER, _names(project))))
    if project_in(folder) is None:
        lines += _to_add("pyproject.toml", f'[tool.pilothouse]\ngroup = "{group}"\npackage = "{project.package}"')
    return lines


def new_operator(folder: Path, operator: OperatorName) -> list[str]:
    """Create a project of an operator in the folder, and return the lines to print. Raises ScaffoldError."""
    names = {
        "group": operator.group,
        "package": operator.package,
        "name": operator.name,
        "kind": operator.kind.kind,
        "module": operator.kind.module,
        "plural": plural_of(operator.kind.kind),
        "pilothouse_version": pilothouse.__version__,
        **_installation_names(operator.name),
    }
    return write(folder, list(_render_all(_OPERATOR, names)))


def new_resource(project: Project, kind: KindName) -> list[str]:
    """Create one version of a kind. The first version is the storage version; later versions convert to it."""
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
    """Create a controller of an existing kind. A controller of another version keeps its files."""
    kind = project.one_version_of(kind)
    names = _names(project, kind)
    module, class_name = kind.module, f"{kind.kind}Controller"
    if other := _other_controller(project, kind):
        module, class_name = f"{kind.module}_{kind.version}", f"{kind.kind}{kind.version.capitalize()}Controller"
    lines = write(project.folder, list(_render_all(_CONTROLLER, {**names, "controller": module, "class": class_name})))
    if other and lines:
        lines += [f"note     {project.package}/controllers/{kind.module}.py reconciles {other}: both controllers run"]
    path = f"{project.package}/resources/{kind.version}/{kind.module}.py"
    if "ready" not in (read(project.folder / path) or ""):
        lines += _to_add(f"Status in {path}", "        ready: bool = False")
    return [*lines, *_how_to_import(project, f"controllers.{module}")]


def _other_controller(project: Project, kind: KindName) -> str:
    """Return the VERSION/KIND of the kind's first controller if this is another version; empty otherwise."""
    text = read(project.folder / project.package / "controllers" / f"{kind.module}.py") or ""
    imported = {version for version in project.versions_of(kind) if f"resources.{version}.{kind.module} " in text}
    return "" if kind.version in imported or not imported else f"{min(imported)}/{kind.kind}"


def new_subresource(project: Project, kind: KindName, subresource: str) -> list[str]:
    """Create a subresource of an existing kind, for POST requests."""
    kind = project.one_version_of(kind)
    function = subresource.replace("-", "_")
    body = kind.kind + "".join(word.capitalize() for word in subresource.split("-"))
    names = {**_names(project, kind), "subresource": subresource, "function": function, "body": body}
    lines = write(project.folder, list(_render_all(_SUBRESOURCE, names)))
    return [*lines, *_how_to_import(project, f"resources.{kind.version}.{kind.module}_{function}")]


def _names(project: Project, kind: KindName | None = None) -> dict[str, str]:
    name = f"{project.group.partition('.')[0]}-apiserver"
    names = {
        "group": project.group,
        "package": project.package,
        "name": name,
        "pilothouse_version": pilothouse.__version__,
        **_installation_names(name),
    }
    if kind is None:
        return names
    return names | {
        "kind": kind.kind,
        "version": kind.version,
        "module": kind.module,
        "plural": plural_of(kind.kind),
    }


def _installation_names(name: str) -> dict[str, str]:
    """Return the texts that install Pilothouse together with the project where no index has Pilothouse."""
    requirement = source_requirement()
    if not requirement:
        return dict.fromkeys(("pilothouse", "installation", "copy_wheels", "wheels", "ignored_wheels"), "")
    source = shlex.quote(requirement[-1])
    return {
        "pilothouse": f"{shlex.join(requirement)} ",
        "installation": render("installation.md", source=source, name=name),
        "copy_wheels": "COPY wheels ./wheels\n",
        "wheels": "wheels/pilothouse-*.whl ",
        "ignored_wheels": "!wheels/\n",
    }


def _render_all(templates: Mapping[str, str], names: Mapping[str, str]) -> Iterator[File]:
    for path, template in templates.items():
        yield File(path.format(**names), render(template, **names))


def _how_to_import(project: Project, module: str) -> list[str]:
    """Return the import to add if the server does not discover its modules."""
    path = f"{project.package}/server.py"
    text = read(project.folder / path) or ""
    line = f"import {project.package}.{module}"
    return [] if "walk_packages" in text or line in text else _to_add(path, line)


def _to_add(target: str, lines: str) -> list[str]:
    return [f"Add to {target}:", "", lines, ""]


def render(template: str, **names: str) -> str:
    """Return a template with the names substituted."""
    text = files("pilothouse.scaffold").joinpath(_FOLDER, f"{template}.template").read_text(encoding="utf-8")
    return Template(text).substitute(names)
