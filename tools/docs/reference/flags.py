"""The flags of every command, from where they are declared."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn, cast
from unittest.mock import patch

from pilothouse.cli.main import COMMANDS
from pilothouse.controlplane.options.options import SECTIONS
from pilothouse.controlplane.options.upstream_flags import WITHOUT_EFFECT, WITHOUT_EFFECT_TITLE
from pilothouse.machinery.flags import Flag, help_sections
from tools.docs.reference.markdown import code, page, table

_NOT_ARGPARSE = ("serve", "version")
_PLACES = ("/home/", "/root/", "/tmp/")


def flags_page() -> str:
    parts = [
        "The flags of `pilothouse serve` itself come first, by task. kube-controller-manager's flags follow,"
        " for the controllers in the server, then kube-apiserver's. The last column compares the default with v1.36.4:"
        " “same”, or upstream's default; empty for flags unknown to upstream. Flags of kube-apiserver that are"
        " not in this table are rejected with an error that names the flag.",
        "## pilothouse serve",
        *_sections_of_serve(),
    ]
    for command, about in COMMANDS.items():
        if command not in _NOT_ARGPARSE:
            parts += [f"## pilothouse {command}", f"{about}.", *_of_parser(_parser_of(command))]
    tested = (
        "the page is generated from the options, and `tests/docs/test_reference.py` compares the page with the options."
    )
    return page("Flags", *parts, tested=tested)


def _sections_of_serve() -> Iterator[str]:
    for title, flags in [*help_sections(SECTIONS.values()), (WITHOUT_EFFECT_TITLE, WITHOUT_EFFECT)]:
        rows = [_row(flag) for flag in sorted(flags, key=lambda flag: flag.name)]
        yield f"### {title[:1].upper()}{title[1:]}"
        yield table(["flag", "type", "default", "", "upstream"], rows)


def _row(flag: Flag) -> Sequence[str]:
    default = flag.type.show(flag.default) if flag.default else ""
    name = f"--{flag.name}" + (f", -{flag.shorthand}" if flag.shorthand else "")
    return [code(name), flag.type.name or "bool", code(default), _help(flag), _upstream(flag.name, default)]


def _help(flag: Flag) -> str:
    return f"{flag.help} {flag.details()}" if flag.details else flag.help


def _upstream(name: str, default: str) -> str:
    """Return what kube-apiserver has as the default, or “same”; kube-controller-manager for what only that has."""
    for flags in _upstream_defaults().values():
        if name in flags:
            theirs = flags[name]
            return "same" if _plain(theirs) == _plain(default) else code(theirs) or "none"
    return ""


def _plain(default: str) -> str:
    text = default.strip('"[]')
    return "" if text in ("false", "0", "0s") else text


@cache
def _upstream_defaults() -> dict[str, dict[str, str]]:
    """Return the defaults by program and flag, as `--help` of v1.36.4 has them."""
    defaults: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("upstream_defaults.json").read_text())
    return defaults


class _Captured(Exception):
    """Carries the parser of a command out of the command."""


def _parser_of(command: str) -> argparse.ArgumentParser:
    """Run the command up to the first call of `parse_args`, and return the parser."""

    def capture(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Captured(parser)

    module = import_module(f"pilothouse.cli.{command.replace('-', '_')}")
    with patch.object(argparse.ArgumentParser, "parse_args", capture):
        try:
            module.main([])
        except _Captured as captured:
            return cast("argparse.ArgumentParser", captured.args[0])
    raise ValueError(f"pilothouse {command}: the command does not parse its arguments with argparse")


def _of_parser(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = [_argument(action) for action in parser._actions if not _is_left_out(action)]
    if rows:
        yield table(["argument", "default", ""], rows)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield f"### {sub.prog}"
                about = {choice.dest: choice.help or "" for choice in action._choices_actions}
                yield about.get(name, "")
                yield from _of_parser(sub)


def _is_left_out(action: argparse.Action) -> bool:
    return isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)) or action.help == argparse.SUPPRESS


def _argument(action: argparse.Action) -> Sequence[str]:
    value = action.metavar or (action.dest.upper() if action.option_strings and action.nargs != 0 else action.dest)
    names = ", ".join(action.option_strings)
    shown = f"{names} {value}" if names and action.nargs != 0 else names or str(value)
    default = "" if action.default in (None, False, argparse.SUPPRESS, []) else str(action.default)
    if default.startswith(_PLACES):
        default = ""  # of the machine on which the page was made
    return [code(shown), code(default), (action.help or "") % {**vars(action), "prog": "pilothouse"}]
