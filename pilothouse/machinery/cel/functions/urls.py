"""URLs in expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MARK = "@url"
_BAD = re.compile(r"[\x00-\x20\x7f]|%(?![0-9a-fA-F]{2})")


def parse(text: str) -> dict[str, Any]:
    """Absolute URIs and absolute paths."""
    parts = urlsplit(text)
    if _BAD.search(text) or not (parts.scheme or text.startswith("/")):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {MARK: text}


def is_url(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _host(value: dict[str, Any]) -> str:
    return str(urlsplit(value[MARK]).netloc).rpartition("@")[2]


def _hostname(value: dict[str, Any]) -> str:
    host = _host(value)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _port(value: dict[str, Any]) -> str:
    return _host(value).rpartition("]")[2].partition(":")[2]


def _query(value: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, each in parse_qsl(urlsplit(value[MARK]).query, keep_blank_values=True):
        found.setdefault(name, []).append(each)
    return found


PARTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "getScheme": lambda value: urlsplit(value[MARK]).scheme,
    "getHost": _host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda value: urlsplit(value[MARK]).path,
    "getQuery": _query,
}
