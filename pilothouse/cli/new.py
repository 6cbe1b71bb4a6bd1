"""`pilothouse new server|resource|controller|subresource`: writes a project of an extension server, step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.scaffold.project import Project

_PARTS = (
    # thing         its name               such as              what it is
    ("resource", "VERSION/KIND", "v1alpha1/Flunder", "a kind, in one version"),
    ("controller", "[VERSION/]KIND", "Flunder", "the controller of a kind"),
    ("subresource", "[VERSION/]KIND/NAME", "Flunder/approve", "a subresource of a kind"),
)
"""What is added to a project that is there."""


def main(arguments: Sequence[str]) -> int:
    """0 if the project is whole, 1 if something is not as it should be; files that were edited are only told of."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.scaffold.errors import ScaffoldError
    from pilothouse.scaffold.generate import generate

    try:
        project, said = _new_server(parsed) if parsed.thing == "server" else _new_part(parsed)
        _say(said)
        _say(made := generate(project) if project else [])
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if not said and not made:
        print("Everything is there already.")
    return 0 if project else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilothouse new", description="Write an extension API server, step by step.")
    things = parser.add_subparsers(dest="thing", required=True)
    server = things.add_parser("server", help="a project", description="Make a project in a folder.")
    server.add_argument("folder", type=Path, metavar="DIR")
    server.add_argument("--group", required=True, help="of the API: a domain of yours, such as wardle.example.com")
    for thing, name, example, what in _PARTS:
        part = things.add_parser(thing, help=what, description=f"Add {what} to this project.")
        part.add_argument("name", metavar=name, help=f"such as {example}")
    return parser


def _new_server(parsed: argparse.Namespace) -> tuple[Project | None, list[str]]:
    """Return the project, unless something must be added by hand before it is one, and what there is to say."""
    from pilothouse.scaffold.names import check_group
    from pilothouse.scaffold.new import new_server
    from pilothouse.scaffold.project import project_in

    said = new_server(parsed.folder, check_group(parsed.group))
    return project_in(parsed.folder), said


def _new_part(parsed: argparse.Namespace) -> tuple[Project, list[str]]:
    """Return this project, and what there is to say."""
    from pilothouse.scaffold.names import parse_kind, parse_subresource
    from pilothouse.scaffold.new import new_controller, new_resource, new_subresource
    from pilothouse.scaffold.project import find_project

    project = find_project(Path.cwd())
    if parsed.thing == "resource":
        return project, new_resource(project, parse_kind(parsed.name, versioned=True))
    if parsed.thing == "controller":
        return project, new_controller(project, parse_kind(parsed.name))
    return project, new_subresource(project, *parse_subresource(parsed.name))


def _say(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)
