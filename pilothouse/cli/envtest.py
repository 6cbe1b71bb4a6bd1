"""`pilothouse envtest`: the kube-apiserver and etcd binaries that envtest, jenvtest and kuttl start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pilothouse.cli.arguments import CommandParser, add_kubernetes_version
from pilothouse.machinery.platform import CAN_FORK

_PROGRAMS = ("kube-apiserver", "etcd")


def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if not CAN_FORK:  # neither scripts nor the signals that stop the programs work here
        print(
            "Error: envtest starts shell scripts, which this system cannot run: use pilothouse.testing", file=sys.stderr
        )
        return 1
    if words and words[0] in _PROGRAMS:
        if words[0] == "kube-apiserver":
            return _kube_apiserver(words[1:])
        from pilothouse.testing.envtest.etcd import run_etcd

        return run_etcd(words[1:])
    parsed = _parser().parse_args(words)
    return _path(parsed.dir, parsed.kubernetes_version or "")


def _path(directory: Path | None, kubernetes_version: str) -> int:
    from pilothouse.testing.envtest.folder import default_folder, make_folder

    folder = (directory or default_folder(kubernetes_version)).expanduser().absolute()
    try:
        make_folder(folder, kubernetes_version)
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


def _kube_apiserver(arguments: Sequence[str]) -> int:
    from tempfile import TemporaryDirectory

    from pilothouse.cli import serve
    from pilothouse.testing.envtest.api_server import options_for_envtest

    if any(word in ("--version", "--version=true") for word in arguments):
        from pilothouse.controlplane.options.pilothouse import choose_release
        from pilothouse.machinery import release

        choose_release(arguments)
        print(f"Kubernetes {release.current().git_version}")
        return 0
    with TemporaryDirectory(prefix="pilothouse-envtest-") as scratch:
        return serve.main(arguments, lambda options: options_for_envtest(options, Path(scratch)))


def _parser() -> argparse.ArgumentParser:
    example = "export KUBEBUILDER_ASSETS=$(pilothouse envtest path)"
    description = "Replace the kube-apiserver and etcd binaries of envtest."
    parser = CommandParser(prog="pilothouse envtest", description=description, example=example)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    help_ = "write a folder with kube-apiserver, etcd and kubectl, and print its path"
    path = commands.add_parser("path", help=help_, description=f"{help_[0].upper()}{help_[1:]}.", example=example)
    path.add_argument("--dir", type=Path, help="folder to write; default: a folder in the user's cache directory")
    add_kubernetes_version(path)
    commands.add_parser("kube-apiserver", help="run the kube-apiserver of that folder", add_help=False)
    commands.add_parser("etcd", help="run the etcd of that folder", add_help=False)
    return parser
