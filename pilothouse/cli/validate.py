"""`pilothouse validate FILE|DIR…`: check manifests as a server would, without a server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pilothouse.cli.arguments import CommandParser, add_kubernetes_versions, add_output


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every object is valid, 1 if an object is invalid, 2 if a path cannot be read."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.rbac and not parsed.user:
        parser.error("--rbac needs --as USER: name the user whose rights to check")
    if len(parsed.kubernetes_version) > 1:
        from pilothouse.cli.offline.matrix import print_matrix

        return print_matrix(("validate",), arguments, parsed.kubernetes_version, parsed.output)
    import gc

    gc.disable()  # the process ends when the work is done
    from pilothouse.apiserver.authn.user import User
    from pilothouse.cli.offline.output import print_report
    from pilothouse.cli.offline.validating import ValidationRequest, validate

    given = [*parsed.crds, *parsed.given, *parsed.rbac, *parsed.policies]
    user = User(parsed.user, groups=tuple(parsed.groups)) if parsed.user else None
    return print_report(validate(ValidationRequest(parsed.paths, given, user, parsed.namespace)), parsed.output)


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="pilothouse validate",
        description="Check manifests as a Kubernetes API server would. Needs no server and changes nothing.",
        example="pilothouse validate deploy/ --crds crds.yaml",
    )
    help_ = "YAML or JSON files, folders (searched recursively), or - for standard input"
    parser.add_argument("paths", nargs="+", metavar="FILE|DIR", help=help_)
    _add_given(parser, "--crds", "CustomResourceDefinitions of the cluster")
    _add_given(parser, "--policies", "admission policies, bindings and parameters of the cluster")
    _add_given(parser, "--rbac", "roles and bindings of the cluster; needs --as")
    _add_given(parser, "--given", "other objects of the cluster: quotas, classes, service accounts")
    help_ = "user who creates the objects; default: an administrator"
    parser.add_argument("--as", dest="user", default="", metavar="USER", help=help_)
    help_ = "group of the user; repeat the flag for several groups"
    parser.add_argument("--as-group", dest="groups", action="append", default=[], metavar="GROUP", help=help_)
    help_ = "namespace of objects that name none"
    parser.add_argument("-n", "--namespace", default="default", help=help_)
    add_kubernetes_versions(parser)
    add_output(parser)
    return parser


def _add_given(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="append", default=[], metavar="FILE|DIR", help=text)
