"""URLs as Go reads them, with Go's words for those it cannot read."""

from __future__ import annotations

import re
from urllib.parse import quote as escape
from urllib.parse import unquote

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_NOT_IN_HOST = re.compile(r"[\x00-\x20\"#/<>?@\\^`{|}\x7f]")
_USER_INFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PORT = re.compile(r":[0-9]*", re.ASCII)


class InvalidUrl(ValueError):
    """Its text is what Go's url.Parse says."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str = ""
    host: str = ""
    user: str | None = None
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(raw: str) -> Url:
    """Raises InvalidUrl."""
    try:
        text, _, fragment = raw.partition("#")
        _check_escapes(fragment)
        return _parse(text, unquote(fragment))
    except InvalidUrl as error:
        raise InvalidUrl(f"parse {quote(raw)}: {error}") from None


def _parse(text: str, fragment: str) -> Url:
    if any(ord(char) < 0x20 or char == "\x7f" for char in text):
        raise InvalidUrl("net/url: invalid control character in URL")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, query=query, fragment=fragment)
        if ":" in rest.partition("/")[0]:
            raise InvalidUrl("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _split_authority(authority)
        rest = slash + path
    _check_escapes(rest)
    return Url(scheme, host, user, unquote(rest), query, fragment)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise InvalidUrl("missing protocol scheme")
    found = _SCHEME.match(text)
    if found is None or text[found.end() : found.end() + 1] != ":":
        return "", text
    return found[0].lower(), text[found.end() + 1 :]


def _split_authority(authority: str) -> tuple[str | None, str]:
    info, at, host = authority.rpartition("@")
    host = _checked_host(host)
    if not at:
        return None, host
    if not _USER_INFO.fullmatch(info):
        raise InvalidUrl("net/url: invalid userinfo")
    _check_escapes(info)
    name, colon, password = info.partition(":")
    return escape(unquote(name), safe="$&+,;=") + colon + escape(unquote(password), safe="$&+,;="), host


def _checked_host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise InvalidUrl("missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if port and not _PORT.fullmatch(port):
        raise InvalidUrl(f"invalid port {quote(port)} after host")
    _check_escapes(host)
    if wrong := _NOT_IN_HOST.search(host):
        raise InvalidUrl(f"invalid character {quote(wrong[0])} in host name")
    return unquote(host)


def _check_escapes(text: str) -> None:
    if wrong := _ESCAPE.search(text):
        raise InvalidUrl(f"invalid URL escape {quote(wrong[0])}")
