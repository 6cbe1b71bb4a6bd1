"""`pilothouse version`: print the version, and the Kubernetes version that the server implements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from pilothouse import __version__
from pilothouse.machinery.flags import BOOL, FlagError
from pilothouse.machinery.gofmt import quote, quoted_list


def main(arguments: Sequence[str]) -> int:
    if arguments:
        print(f'Error: "pilothouse version" does not take any arguments, got {quoted_list(arguments)}', file=sys.stderr)
        return 1
    print(version_line())
    return 0


def requested_version(arguments: Sequence[str], line: Callable[[], str]) -> str | None:
    """Return the text that --version asks for: `line`, or Go's form of all fields for --version=raw; None if the flag
    is absent or false. Raises FlagError.
    """
    value = "false"
    for word in arguments:
        name, equals, given = word.partition("=")
        if name == "--version":
            value = given if equals else "true"
    if value == "raw":
        from pilothouse.apiserver.server.version import version_info

        fields = (f"{name[0].upper()}{name[1:]}:{quote(text)}" for name, text in version_info().items())
        return f"version.Info{{{', '.join(fields)}}}"
    try:
        return line() if BOOL.parse(value) else None
    except ValueError:
        raise FlagError(f'invalid value "{value}" for --version: expected true, false or raw') from None


def version_line() -> str:
    from pilothouse.machinery import release

    return f"Pilothouse {__version__} (Kubernetes {release.current().git_version})"
