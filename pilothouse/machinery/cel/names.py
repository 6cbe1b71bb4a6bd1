"""The names of fields as CEL can say them: `x-y` is `x__dash__y`, `namespace` is `__namespace__`."""

from __future__ import annotations

import re

_RESERVED = {
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
}
_RESERVED |= {"import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}
_SAYABLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str | None:
    """None for a field that no expression can name."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _SAYABLE.fullmatch(name):
        return None
    return re.sub(r"__|[-./]", lambda found: _ESCAPES[found[0]], name)
