"""`pilothouse test cel|policy FILE…`: cases against the rules of custom resources and against admission policies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

_ABOUT = {
    "policy": "Cases against ValidatingAdmissionPolicies and MutatingAdmissionPolicies.",
    "cel": "Cases against the schemas and x-kubernetes-validations of CustomResourceDefinitions.",
}


def main(arguments: Sequence[str]) -> int:
    """0 if everything is as the cases expect, 1 if something is not, 2 if they cannot be read."""
    parsed = _parser().parse_args(arguments)

    from pilothouse.cli.offline.output import print_report
    from pilothouse.cli.offline.trial import run_case_files

    return print_report(run_case_files(parsed.files, parsed.about), parsed.output)


def _parser() -> argparse.ArgumentParser:
    description = "Run cases against policies and rules. Nothing has to run, nothing is changed."
    parser = argparse.ArgumentParser(prog="pilothouse test", description=description)
    subjects = parser.add_subparsers(dest="about", required=True)
    for name, text in _ABOUT.items():
        subject = subjects.add_parser(name, help=text, description=text)
        subject.add_argument("files", nargs="+", metavar="FILE", help="of cases, see docs/how-to/offline-checks.md")
        subject.add_argument("-o", "--output", choices=("text", "json", "junit", "github"), default="text")
    return parser
