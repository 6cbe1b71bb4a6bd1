"""`pilothouse version`: print the version, and the Kubernetes version that the server implements."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pilothouse import __version__
from pilothouse.machinery.gofmt import quoted_list


def main(arguments: Sequence[str]) -> int:
    if arguments:
        print(f'Error: "pilothouse version" does not take any arguments, got {quoted_list(arguments)}', file=sys.stderr)
        return 1
    print(version_line())
    return 0


def version_line() -> str:
    from pilothouse.machinery.release import GIT_VERSION

    return f"Pilothouse {__version__} (Kubernetes {GIT_VERSION})"
