"""Formatting of Go's fmt package, as used in upstream's messages."""

from __future__ import annotations

import re
from collections.abc import Iterable

ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}


def quote(text: str) -> str:
    """Format as Go's %q: double quotes, Go's escapes, printable Unicode unchanged."""
    if not text.isprintable() or '"' in text or "\\" in text:
        text = text.translate({ord(char): _escape(char) for char in set(text)})  # in C: texts may be long
    return f'"{text}"'


def quoted_list(texts: Iterable[str]) -> str:
    """Format a list as Go's %q."""
    return f"[{' '.join(map(quote, texts))}]"


def _escape(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SPECIAL_IN_HTML = re.compile("[<>&\u2028\u2029]")


def escape_html(json: str) -> str:
    """Escape characters special to HTML and JavaScript, as Go's encoding/json does."""
    if not _SPECIAL_IN_HTML.search(json):
        return json
    return _SPECIAL_IN_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", json)
