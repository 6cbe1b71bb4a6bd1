"""`pilothouse validate FILE|DIR…`: what a server would say of manifests, without one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """0 if all manifests are well, 1 if one is not, 2 if they cannot be read."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.rbac and not parsed.user:
        parser.error("--rbac needs --as: whose rights are to be looked at?")
    import gc

    gc.disable()  # the process ends when the work is done
    from pilothouse.apiserver.authn.user import User
    from pilothouse.cli.offline.output import print_report
    from pilothouse.cli.offline.validating import WhatToValidate, validate

    given = [*parsed.crds, *parsed.given, *parsed.rbac, *parsed.policies]
    user = User(parsed.user, groups=tuple(parsed.groups)) if parsed.user else None
    return print_report(validate(WhatToValidate(parsed.paths, given, user, parsed.namespace)), parsed.output)


def _parser() -> argparse.ArgumentParser:
    description = "Say what a Kubernetes API server would say of manifests. Nothing has to run, nothing is changed."
    parser = argparse.ArgumentParser(prog="pilothouse validate", description=description)
    parser.add_argument(
        "paths", nargs="+", metavar="FILE|DIR", help="YAML or JSON; folders with all below; - for stdin"
    )
    _add_given(parser, "--crds", "CustomResourceDefinitions that the cluster has")
    _add_given(parser, "--policies", "admission policies, bindings and parameters that the cluster has")
    _add_given(parser, "--rbac", "roles and bindings that the cluster has; with --as")
    _add_given(parser, "--given", "other objects that the cluster has: quotas, classes, service accounts")
    parser.add_argument(
        "--as", dest="user", default="", metavar="USER", help="who creates them; an administrator if not given"
    )
    parser.add_argument("--as-group", dest="groups", action="append", default=[], metavar="GROUP", help="of that user")
    parser.add_argument("-n", "--namespace", default="default", help="of manifests that name none")
    parser.add_argument("-o", "--output", choices=("text", "json", "junit", "github"), default="text")
    return parser


def _add_given(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="append", default=[], metavar="FILE|DIR", help=text)
