"""The query of a request, as Go's net/url reads it.

It may be a megabyte long and is read before anybody knows whose it is, so the number of its parameters is limited.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.percent import BadEscape, unescape

_MOST: Final = 10_000
"""net/url's limit."""


def parse_query(query: str) -> dict[str, list[str]]:
    """The values of each parameter. A part that is badly escaped stands for itself. Raises BadRequest."""
    if query.count("&") >= _MOST:
        raise BadRequest("number of URL query parameters exceeded limit")
    parameters: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            parameters.setdefault(_plain(name), []).append(_plain(value))
    return parameters


def _plain(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    if text.isascii() and "%" not in text:
        return text
    try:
        return unescape(text.encode("latin-1")).decode("utf-8", "replace")
    except (BadEscape, UnicodeEncodeError):
        return text
