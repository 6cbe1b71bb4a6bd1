"""`pilothouse test cel|policy FILE…`: run test cases against CRD validation rules or admission policies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pilothouse.cli.arguments import CommandParser, add_kubernetes_versions, add_output

_SUBJECTS = {
    "policy": "Test ValidatingAdmissionPolicies and MutatingAdmissionPolicies.",
    "cel": "Test the schemas and x-kubernetes-validations of CustomResourceDefinitions.",
}


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every case passes, 1 if a case fails, 2 if a file cannot be read."""
    parsed = _parser().parse_args(arguments)
    if len(parsed.kubernetes_version) > 1:
        from pilothouse.cli.offline.matrix import print_matrix

        return print_matrix(("test",), arguments, parsed.kubernetes_version, parsed.output)

    from pilothouse.cli.offline.output import print_report
    from pilothouse.cli.offline.trial import run_case_files

    return print_report(run_case_files(parsed.files, parsed.about), parsed.output)


def _parser() -> argparse.ArgumentParser:
    description = "Run test cases against admission policies or CRD validation rules. Needs no server."
    parser = CommandParser(prog="pilothouse test", description=description, example="pilothouse test policy cases.yaml")
    subjects = parser.add_subparsers(dest="about", required=True, metavar="COMMAND")
    for name, text in _SUBJECTS.items():
        example = f"pilothouse test {name} cases.yaml"
        subject = subjects.add_parser(name, help=text, description=text, example=example)
        help_ = "files of test cases, in the format of docs/how-to/offline-checks.md"
        subject.add_argument("files", nargs="+", metavar="FILE", help=help_)
        add_kubernetes_versions(subject)
        add_output(subject)
    return parser
