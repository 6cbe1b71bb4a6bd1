"""Python source from templates: a placeholder alone on its line takes many lines, at its own indentation."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any

_ALONE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def fill(template: str, **parts: str) -> str:
    """The template with its parts. A block that is empty becomes `pass`; braces that name no part stay."""
    blocks = _ALONE.sub(lambda match: _block(match[1], parts[match[2]]), template)
    return re.sub(r"\{(\w+)\}", lambda match: parts.get(match[1], match[0]), blocks)


def _block(margin: str, lines: str) -> str:
    return indent(lines.rstrip("\n"), margin) if lines else f"{margin}pass"


def define(name: str, source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function `name` that the source defines, with the namespace for its globals."""
    exec(compile(source, f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function
