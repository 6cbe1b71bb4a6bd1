"""Queries on their way to another API server: read and written anew, as Go's net/url does it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote_plus

from pilothouse.machinery.percent import BadEscape, unescape


def reencoded(query: str) -> str:
    """Return the parameters in the order of their names, each with its values in their own order.

    A parameter that Go cannot read is left out.
    """
    parameters = sorted(_parameters(query.encode("latin-1", "replace")), key=lambda parameter: parameter[0])
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in parameters)


def _parameters(query: bytes) -> Iterator[tuple[bytes, bytes]]:
    for pair in query.split(b"&"):
        if not pair or b";" in pair:
            continue
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        try:
            yield unescape(name), unescape(value)
        except BadEscape:
            continue
