"""`pilothouse generate crds|rbac|webhooks|manifests MODULE`: the manifests of an operator, from its code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser, add_kubeconfig

_PARTS = (
    # part         description
    ("crds", "CustomResourceDefinitions of the kinds"),
    ("rbac", "roles for the declared use of resources"),
    ("webhooks", "webhook configurations and their Service"),
    ("manifests", "everything that deploys the operator"),
)


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 if the code cannot be read, or if --check finds a difference."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.client.config.model import ConfigError
    from pilothouse.client.rest.errors import ConnectionFailed
    from pilothouse.machinery.codec.yaml_nodes import YamlError
    from pilothouse.machinery.status_error import StatusError
    from pilothouse.scaffold.names import ScaffoldError
    from pilothouse.scaffold.operator_code import load_operator
    from pilothouse.scaffold.operator_files import differences, rendered, write_files

    try:
        recorded = _recorded(parsed) if parsed.from_recording else ()
        operator = load_operator(
            parsed.module, name=parsed.name, namespace=parsed.namespace, image=parsed.image, recorded=recorded
        )
        files = rendered(operator, parsed.part)
        if parsed.check:
            folder = parsed.output or Path("manifests")
            lines = differences(folder, files, parsed.part)
            print("".join(lines), end="")
            if lines:
                print(f"Error: {folder} is out of date: run `{_command(parsed, folder)}`", file=sys.stderr)
            return 1 if lines else 0
        if parsed.output is None:
            print("---\n".join(files.values()), end="")
        else:
            for line in write_files(parsed.output, files, parsed.part):
                print(line)
    except (ScaffoldError, ConfigError, ConnectionFailed, StatusError, YamlError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _command(parsed: argparse.Namespace, folder: Path) -> str:
    return f"pilothouse generate {parsed.part} {parsed.module} --output {folder}"


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="pilothouse generate",
        description="Generate the manifests of an operator from its code.",
        example="pilothouse generate manifests backup_operator --output manifests",
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    for part, text in _PARTS:
        sub = parts.add_parser(
            part,
            help=text,
            description=f"Generate the {text} of an operator.",
            example=f"pilothouse generate {part} backup_operator",
        )
        sub.add_argument("module", metavar="MODULE", help="module with a Manager, or with reconcilers; MODULE:NAME")
        sub.add_argument("--output", type=Path, metavar="DIR", help="write the files in DIR; default: print them")
        sub.add_argument(
            "--check", action="store_true", help="write nothing; exit 1 with a diff if DIR (manifests) is out of date"
        )
        sub.add_argument("--name", default="", help="name of the operator; default: the name in its code")
        sub.add_argument("--namespace", default="", help="namespace of the operator; default: NAME-system")
        sub.add_argument("--image", default="", help="container image; default: NAME:latest")
        help_ = "add the permissions of a Recording: a file, or the name of a Recording on a server with --testing"
        sub.add_argument("--from-recording", default="", metavar="RECORDING", help=help_)
        add_kubeconfig(sub)
    return parser


def _recorded(parsed: argparse.Namespace) -> list[dict[str, object]]:
    import asyncio

    from pilothouse.bench.recorded_roles import rules_of
    from pilothouse.cli.rbac import recording_named
    from pilothouse.machinery.codec.yaml import parse_yaml

    file = Path(parsed.from_recording)
    if file.is_file():
        recording = parse_yaml(file.read_bytes()).value
    else:
        recording = asyncio.run(recording_named(parsed.from_recording, parsed.kubeconfig))
    return rules_of(recording)
