"""`pilothouse docs`: print the API reference of the project as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    from pilothouse.scaffold.generate import write_docs
    from pilothouse.scaffold.names import ScaffoldError
    from pilothouse.scaffold.project import find_project
    from pilothouse.scaffold.reference import reference

    try:
        project = find_project(Path.cwd())
        server = project.server()
        print("\n".join([*write_docs(project, server), ""]) if parsed.write else reference(server), end="")
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> CommandParser:
    description = "Print the API reference of this project as Markdown, generated from the types of its kinds."
    parser = CommandParser(prog="pilothouse docs", description=description)
    parser.add_argument("--write", action="store_true", help="write a page per kind in docs/ instead of printing")
    return parser
