"""`pilothouse new server|resource|controller|subresource`: writes a project of an extension server, step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.scaffold.project import Project


def main(arguments: Sequence[str]) -> int:
    """0 if the project is whole, 1 if something is not as it should be; files that were edited are only told of."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.scaffold.errors import ScaffoldError
    from pilothouse.scaffold.generate import generate

    write: Callable[[argparse.Namespace], tuple[Project | None, list[str]]] = parsed.write
    try:
        project, said = write(parsed)
        _say(said)
        _say(made := generate(project) if project else [])
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if not said and not made:
        print("Everything is there already.")
    return 0 if project else 1


def _say(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilothouse new", description="Write an extension API server, step by step.")
    things = parser.add_subparsers(dest="thing", required=True)
    server = things.add_parser("server", help="a project", description="Make a project in a folder.")
    server.add_argument("folder", type=Path, metavar="DIR")
    server.add_argument("--group", required=True, help="of the API: a domain of yours, such as wardle.example.com")
    server.set_defaults(write=_server)
    resource = things.add_parser("resource", help="a kind", description="Add a version of a kind to this project.")
    resource.add_argument("kind", metavar="VERSION/KIND", help="such as v1alpha1/Flunder")
    resource.set_defaults(write=_resource)
    controller = things.add_parser("controller", help="of a kind", description="Add a controller to this project.")
    controller.add_argument("kind", metavar="[VERSION/]KIND", help="such as Flunder")
    controller.set_defaults(write=_controller)
    subresource = things.add_parser("subresource", help="of a kind", description="Add a subresource to this project.")
    subresource.add_argument("name", metavar="[VERSION/]KIND/NAME", help="such as Flunder/approve")
    subresource.set_defaults(write=_subresource)
    return parser


def _server(parsed: argparse.Namespace) -> tuple[Project | None, list[str]]:
    from pilothouse.scaffold.names import check_group
    from pilothouse.scaffold.new import new_server
    from pilothouse.scaffold.project import project_in

    said = new_server(parsed.folder, check_group(parsed.group))
    return project_in(parsed.folder), said


def _resource(parsed: argparse.Namespace) -> tuple[Project, list[str]]:
    from pilothouse.scaffold.names import parse_kind
    from pilothouse.scaffold.new import new_resource
    from pilothouse.scaffold.project import find_project

    kind, project = parse_kind(parsed.kind, versioned=True), find_project(Path.cwd())
    return project, new_resource(project, kind)


def _controller(parsed: argparse.Namespace) -> tuple[Project, list[str]]:
    from pilothouse.scaffold.names import parse_kind
    from pilothouse.scaffold.new import new_controller
    from pilothouse.scaffold.project import find_project

    kind, project = parse_kind(parsed.kind), find_project(Path.cwd())
    return project, new_controller(project, kind)


def _subresource(parsed: argparse.Namespace) -> tuple[Project, list[str]]:
    from pilothouse.scaffold.names import parse_subresource
    from pilothouse.scaffold.new import new_subresource
    from pilothouse.scaffold.project import find_project

    (kind, name), project = parse_subresource(parsed.name), find_project(Path.cwd())
    return project, new_subresource(project, kind, name)
