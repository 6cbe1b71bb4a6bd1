"""Values as Go's fmt package prints them, because upstream's messages are made with it."""

from __future__ import annotations

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
