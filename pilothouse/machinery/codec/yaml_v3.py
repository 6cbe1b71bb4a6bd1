"""YAML text of JSON values in the format of Go's yaml.v3: block style, four spaces, keys in their own order.

{"a": ["b", {"c": 1, "d": "2"}]}   →   a:
                                           - b
                                           - c: 1
                                             d: "2"
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from pilothouse.machinery.codec.yaml_scalars import Tag, resolve

_INDENT = 4
_ROOT, _VALUE, _ITEM = "root", "value", "item"
_OLD_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})
"""Booleans of YAML 1.1 in lower case, which yaml.v3 reads as strings."""
_SPECIAL = re.compile("[^\n\t -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
"""Characters that only a double-quoted string can contain."""
_NOT_PLAIN = re.compile(
    r"---|\.\.\.|[#,\[\]{}&*!|>'\"%@` \n]|[?:\-](?:[ \t]|$)"  # at the start
    r"|.*(?::(?:[ \t]|$)|[ \t]#|[ \n]$|\n)",
    re.DOTALL,
)
_ESCAPES = {
    **{
        ord(char): f"\\{letter}"
        for char, letter in zip("\0\a\b\t\n\v\f\r\x1b\x85\u2028\u2029", "0abtnvfreNLP", strict=True)
    },
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def yaml_v3(value: Any) -> str:
    """Return the document, which ends with a line break."""
    return _text(value, -1, _ROOT) + "\n"


def _text(value: Any, parent: int, place: str) -> str:
    """Return the text after the indicator (`key:` or `-`). `parent` is the indentation of the enclosing block."""
    if isinstance(value, dict) and value:
        indent = _grown(parent, place)
        return _block([f"{_string(key)}:{_text(item, indent, _VALUE)}" for key, item in value.items()], indent, place)
    if isinstance(value, list) and value:
        indent = _grown(parent, place)
        return _block([f"-{_text(item, indent, _ITEM)}" for item in value], indent, place)
    if isinstance(value, str):
        scalar = _literal(value, parent, place) if _is_literal(value) else _string(value)
    else:
        scalar = orjson.dumps(value).decode()
    return scalar if place == _ROOT else f" {scalar}"


def _block(entries: list[str], indent: int, place: str) -> str:
    line = f"\n{' ' * indent}"
    return {_ROOT: "", _VALUE: line, _ITEM: " "}[place] + line.join(entries)


def _grown(parent: int, place: str) -> int:
    """Return the indentation of a block: behind the `- ` of an item, else the next multiple of four."""
    if place == _ROOT:
        return 0
    return parent + 2 if place == _ITEM else _INDENT * ((parent + _INDENT) // _INDENT)


def _is_literal(text: str) -> bool:
    return "\n" in text and not text.endswith(" ") and " \n" not in text and not _SPECIAL.search(text)


def _literal(text: str, parent: int, place: str) -> str:
    indent = " " * (_grown(parent, place) or _INDENT)
    hint = str(_INDENT) if text[0] in " \n" else ""
    if not text.endswith("\n"):
        chomping, body = "-", text
    elif len(text) == 1 or text.endswith("\n\n"):
        chomping, body = "+", text[:-1]
    else:
        chomping, body = "", text[:-1]
    lines = (f"{indent}{line}" if line else "" for line in body.split("\n"))
    return "\n".join([f"|{hint}{chomping}", *lines])


def _string(text: str) -> str:
    """Return a string on one line: plain, in single quotes, or in double quotes if plain text is of another type."""
    tag = resolve(text)[0]
    is_string = tag is Tag.STRING or (tag is Tag.BOOL and text.lower() in _OLD_BOOLEANS)
    if not is_string or "\t" in text or "\n" in text or _SPECIAL.search(text):
        return f'"{_SPECIAL.sub(_escaped, text.translate(_ESCAPES))}"'
    if _NOT_PLAIN.match(text):
        return "'{}'".format(text.replace("'", "''"))
    return text


def _escaped(char: re.Match[str]) -> str:
    code = ord(char[0])
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
