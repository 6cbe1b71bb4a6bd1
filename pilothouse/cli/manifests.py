"""`pilothouse manifests`: what brings the project's server into a cluster, as YAML."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    parsed = _parser().parse_args(arguments)
    from pilothouse.scaffold.errors import ScaffoldError
    from pilothouse.scaffold.generate import write_manifests
    from pilothouse.scaffold.manifests import Manifests, as_yaml
    from pilothouse.scaffold.project import find_project

    try:
        project = find_project(Path.cwd())
        manifests = Manifests.of(project.server(), image=parsed.image, namespace=parsed.namespace)
        said = "\n".join([*write_manifests(project, manifests), ""]) if parsed.write else as_yaml(manifests.objects())
        print(said, end="")
    except ScaffoldError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    description = "Print what brings the server of this project into a cluster: kubectl apply -f - takes it."
    parser = argparse.ArgumentParser(prog="pilothouse manifests", description=description)
    parser.add_argument("--image", default="", help="of the server; its name, with the tag latest, if not given")
    parser.add_argument("--namespace", default="", help="that it runs in; the one that the server says, if not given")
    parser.add_argument("--write", action="store_true", help="write them into manifests/ instead of printing them")
    return parser
