"""`pilothouse manifests`: print the manifests that deploy the project's server, as YAML."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    from pilothouse.scaffold.generate import write_manifests
    from pilothouse.scaffold.manifests import Manifests, as_yaml
    from pilothouse.scaffold.names import ScaffoldError
    from pilothouse.scaffold.project import find_project

    try:
        project = find_project(Path.cwd())
        manifests = Manifests.of(project.server(), image=parsed.image, namespace=parsed.namespace)
        output = "\n".join([*write_manifests(project, manifests), ""]) if parsed.write else as_yaml(manifests.objects())
        print(output, end="")
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="pilothouse manifests",
        description="Print the manifests that deploy the server of this project.",
        example="pilothouse manifests --image registry.example.com/wardle:1.0 | kubectl apply -f -",
    )
    parser.add_argument("--image", default="", help="container image; default: the server's name with the tag latest")
    parser.add_argument("--namespace", default="", help="namespace of the server; default: the namespace in its code")
    parser.add_argument("--write", action="store_true", help="write the files in manifests/ instead of printing them")
    return parser
