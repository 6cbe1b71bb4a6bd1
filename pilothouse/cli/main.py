"""The entry point of `pilothouse`. Imports only the module of the command, so that `--help` and errors are fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper

GROUPS = {
    "Run a server": {
        "serve": "Run the Kubernetes API server",
        "version": "Print the version",
    },
    "Write operators and extension API servers": {
        "new": "Create a project, or add a kind, controller or subresource to it",
        "generate": "Generate CRDs, RBAC, webhooks and manifests of an operator from its code",
        "dev": "Run the project's server and restart it on every change",
        "manifests": "Print the manifests that deploy the project's server",
        "docs": "Print the API reference of the project",
    },
    "Test": {
        "validate": "Check manifests as a server would, without a server",
        "test": "Run test cases against admission policies and CRD validation rules",
        "diff-versions": "Print the differences between two Kubernetes versions",
        "explore": "Find bugs of an operator by crashes, lost responses and stale caches",
        "rbac": "Print the minimal RBAC roles for the requests of a recording",
        "envtest": "Replace the kube-apiserver and etcd binaries of envtest",
    },
    "Keep data": {
        "backup": "Write a consistent backup of a store to a file",
        "restore": "Create a store from a backup file",
        "migrate": "Copy a store from SQLite to etcd, or from etcd to SQLite",
        "check": "Check the integrity of a store",
        "snapshot": "Save, load, export or import the objects of a cluster",
    },
    "Operate and observe": {
        "console": "Open the web console of a cluster",
        "top": "Show the load of a server in the terminal",
        "doctor": "Diagnose aggregated APIs that are not available",
        "kubeconfig": "Print a kubeconfig with all servers of a cluster",
        "join-token": "Print the token that lets a server join a cluster",
        "pki": "Show or rotate the CAs and keys that the servers of a cluster share",
    },
}
"""Commands by task, in the order of the help."""

COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}
"""Command -> help text. Each command is a module here with `main(arguments) -> exit code`; "-" becomes "_"."""

_INTERRUPTED = 130
"""Exit code of shells for SIGINT: 128 + 2."""

_USAGE = """Pilothouse: the Kubernetes API server in Python.

Usage:
  pilothouse <command> [flags]

{groups}

Use "pilothouse <command> --help" for the flags of a command.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # Windows code pages lack most characters
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(
            _USAGE.format(
                groups="\n\n".join(
                    "\n".join([f"{title}:", *(f"  {name:<15}{text}" for name, text in GROUPS[title].items())])
                    for title in GROUPS
                )
            ),
            end="",
        )
        return 0
    command = "version" if words[0] == "--version" else words[0]
    if command not in COMMANDS:
        print(f"Error: {_unknown(command)}", file=sys.stderr)
        return 1
    run: Callable[[Sequence[str]], int] = import_module(f"pilothouse.cli.{command.replace('-', '_')}").main
    try:
        return run(words[1:])
    except KeyboardInterrupt:
        print("Interrupted", file=sys.stderr)
        return _INTERRUPTED


def _unknown(word: str) -> str:
    from pilothouse.machinery.flags import did_you_mean

    kind, known = ("flag:", ["--help", "--version"]) if word.startswith("-") else ("command", [*COMMANDS])
    return f'unknown {kind} {word} for "pilothouse"{did_you_mean(word, known)}'


if __name__ == "__main__":
    sys.exit(main())
