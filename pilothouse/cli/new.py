"""`pilothouse new operator|server|resource|controller|subresource`: create a project of an operator or of an extension
server, and add to the latter."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser

if TYPE_CHECKING:
    from pilothouse.scaffold.project import Project

_PARTS = (
    # part          metavar                example              description
    ("resource", "VERSION/KIND", "v1alpha1/Flunder", "a version of a kind"),
    ("controller", "[VERSION/]KIND", "Flunder", "the controller of a kind"),
    ("subresource", "[VERSION/]KIND/NAME", "Flunder/approve", "a subresource of a kind"),
)
"""Parts that can be added to a project."""


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the project is complete, 1 if the user must edit a file first. Edited files are never overwritten."""
    parsed = _parser().parse_args(arguments)
    if parsed.thing == "operator":
        return _new_operator(parsed)
    from pilothouse.scaffold.generate import generate
    from pilothouse.scaffold.names import ScaffoldError

    try:
        project, lines = _new_server(parsed) if parsed.thing == "server" else _new_part(parsed)
        _print_lines(lines)
        _print_lines(generated := generate(project) if project else [])
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if not lines and not generated:
        print("Nothing to do: every file exists already.")
    return 0 if project else 1


def _parser() -> argparse.ArgumentParser:
    example = "pilothouse new server wardle --group wardle.example.com"
    description = "Create a project of an operator or of an extension API server, and add parts to the server."
    parser = CommandParser(prog="pilothouse new", description=description, example=example)
    things = parser.add_subparsers(dest="thing", required=True, metavar="COMMAND")
    help_ = "create a project"
    server = things.add_parser("server", help=help_, description="Create a project in a folder.", example=example)
    server.add_argument("folder", type=Path, metavar="DIR", help="folder of the project")
    server.add_argument("--group", required=True, help="API group: a domain of yours, such as wardle.example.com")
    example = "pilothouse new operator backup --group demo.example.com"
    description = "Create a project of an operator, with tests, manifests, an image and CI."
    operator = things.add_parser(
        "operator", help="create a project of an operator", description=description, example=example
    )
    operator.add_argument("name", metavar="NAME", help="name of the operator, such as backup")
    operator.add_argument("--group", default="", help="API group of the kind; default: NAME.example.com")
    operator.add_argument("--kind", default="", help="kind; default: NAME in CamelCase")
    operator.add_argument("--output", type=Path, metavar="DIR", help="folder of the project; default: NAME-operator")
    for thing, name, example, text in _PARTS:
        part = things.add_parser(
            thing,
            help=f"add {text}",
            description=f"Add {text} to the project in the current folder.",
            example=f"pilothouse new {thing} {example}",
        )
        part.add_argument("name", metavar=name, help=f"name of the {thing}, such as {example}")
    return parser


def _new_operator(parsed: argparse.Namespace) -> int:
    from pilothouse.scaffold.generate import generate_operator
    from pilothouse.scaffold.names import ScaffoldError, parse_operator
    from pilothouse.scaffold.new import new_operator

    try:
        operator = parse_operator(parsed.name, group=parsed.group, kind=parsed.kind)
        folder = parsed.output or Path(operator.name)
        lines = new_operator(folder, operator)
        _print_lines(lines)
        _print_lines(generated := generate_operator(folder, operator.package))
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if not lines and not generated:
        print("Nothing to do: every file exists already.")
    return 0


def _new_server(parsed: argparse.Namespace) -> tuple[Project | None, list[str]]:
    """Return the project (None if the user must edit a file first) and the lines to print."""
    from pilothouse.scaffold.names import check_group
    from pilothouse.scaffold.new import new_server
    from pilothouse.scaffold.project import project_in

    lines = new_server(parsed.folder, check_group(parsed.group))
    return project_in(parsed.folder), lines


def _new_part(parsed: argparse.Namespace) -> tuple[Project, list[str]]:
    """Return this project and the lines to print."""
    from pilothouse.scaffold.names import parse_kind, parse_subresource
    from pilothouse.scaffold.new import new_controller, new_resource, new_subresource
    from pilothouse.scaffold.project import find_project

    project = find_project(Path.cwd())
    if parsed.thing == "resource":
        return project, new_resource(project, parse_kind(parsed.name, versioned=True))
    if parsed.thing == "controller":
        return project, new_controller(project, parse_kind(parsed.name))
    return project, new_subresource(project, *parse_subresource(parsed.name))


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        print(line, flush=True)
