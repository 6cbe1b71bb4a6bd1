"""Values as Go's fmt package prints them, because upstream's messages are made with it."""

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
    """Go's %q: double quotes, Go's escapes, printable Unicode left alone."""
    if not text.isprintable() or '"' in text or "\\" in text:
        text = text.translate({ord(char): _escape(char) for char in set(text)})  # which is in C: texts may be long
    return f'"{text}"'


def quoted_list(texts: Iterable[str]) -> str:
    """Go's %q of a list."""
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
    """JSON with the signs that HTML and JavaScript know as escapes, as Go's encoding/json writes them."""
    if not _SPECIAL_IN_HTML.search(json):
        return json
    return _SPECIAL_IN_HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", json)
