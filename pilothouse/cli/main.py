"""The entry point. Imports nothing that a command does not need: `--help` and a bad flag answer at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper

COMMANDS = {
    "serve": "Run the Kubernetes API server",
    "new": "Write an extension API server, step by step",
    "dev": "Run the extension API server of this project while it is written",
    "manifests": "Print what brings the server of this project into a cluster",
    "validate": "Say what a server would say of manifests, without one",
    "test": "Run cases against admission policies and the rules of custom resources",
    "docs": "Print the reference of this project's API",
    "rbac": "Print the least roles that allow what a test has recorded",
    "envtest": "Be the kube-apiserver and etcd of tests that start one",
    "doctor": "Find out why an aggregated API is not available",
    "snapshot": "Keep a cluster's objects in a file or a folder, and use them",
    "backup": "Write all that a store holds at one revision into a file",
    "restore": "Make a store of such a file",
    "migrate": "Move a store: from the embedded one to etcd, or back",
    "check": "Say whether all that a store holds can be read, and agrees",
    "console": "Show a cluster in the browser",
    "join-token": "Print the token with which a server joins others",
    "kubeconfig": "Print one kubeconfig for all servers of a cluster",
    "pki": "Show and replace the CAs and keys that the servers of a cluster share",
    "top": "Show in the terminal what a server does",
    "version": "Print the version",
}
"""Each is a module of this package with `main(arguments) -> exit code`; a hyphen is an underscore there."""

_USAGE = """Pilothouse: the Kubernetes API server in Python.

Usage:
  pilothouse <command> [flags]

Commands:
{commands}

Use "pilothouse <command> --help" for the flags of a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the code pages of Windows lack most letters
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_USAGE.format(commands="\n".join(f"  {name:<11}{text}" for name, text in COMMANDS.items())), end="")
        return 0
    command = "version" if words[0] == "--version" else words[0]
    if command not in COMMANDS:
        kind = "flag:" if command.startswith("-") else "command"
        print(f'Error: unknown {kind} {command} for "pilothouse"', file=sys.stderr)
        return 1
    run: Callable[[Sequence[str]], int] = import_module(f"pilothouse.cli.{command.replace('-', '_')}").main
    return run(words[1:])


if __name__ == "__main__":
    sys.exit(main())
