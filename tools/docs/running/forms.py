"""Blocks are what they say they are: a JSON block is JSON. Nobody has to run anything to see that."""

from __future__ import annotations

import ast
import configparser
import json
import tomllib
from collections.abc import Callable

import yaml

from tools.docs.blocks import Block
from tools.docs.running.commands import commands_in


def check_form(block: Block) -> None:
    """Raises ValueError if the text of a block is not of its language."""
    check = _CHECKS.get(block.language)
    if check is None:
        return
    try:
        check(block.text)
    except (SyntaxError, yaml.YAMLError, configparser.Error) as error:
        raise ValueError(f"this is no {block.language}: {error}") from error


def _python(text: str) -> None:
    compile(text, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _console(text: str) -> None:
    if not commands_in(text):
        raise ValueError("a console block without a command")


_CHECKS: dict[str, Callable[[str], object]] = {
    "console": _console,
    "ini": lambda text: configparser.ConfigParser().read_string(text),
    "json": json.loads,
    "python": _python,
    "toml": tomllib.loads,
    "yaml": lambda text: [*yaml.safe_load_all(text)],
}
