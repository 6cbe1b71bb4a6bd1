"""URLs, read with the rules and messages of Go's net/url package."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.network import parse_ip
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+\-.]*):", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_ASCII_ESCAPE = re.compile(r"%(?!25)[0-7][0-9a-fA-F]")
_HOST_CHAR = re.compile(r"[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]")
_PATH_SAFE = "-_.~$&+/:=@"
_PATH_WELL_FORMED = re.compile(r"[A-Za-z0-9\-_.~$&+/:=@!'()*,;\[\]%]*", re.ASCII)


class _Unreadable(Exception):
    """Text that is no URL, with Go's reason."""


@dataclass(frozen=True, slots=True)
class URL:
    cel_type = "kubernetes.URL"

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    """As it was written."""
    query: str = ""
    fragment: str = ""
    omits_host: bool = False
    ends_with_question_mark: bool = False

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if (self.scheme or self.host or self.user is not None) and not (
                self.omits_host and not self.host and self.user is None
            ):
                if self.host or self.path or self.user is not None:
                    text += "//"
                text += (f"{self.user}@" if self.user is not None else "") + self.host
            path = escaped_path(self)
            if path and path[0] != "/" and self.host:
                text += "/"
            text += path
        if self.query or self.ends_with_question_mark:
            text += f"?{self.query}"
        return text + (f"#{self.fragment}" if self.fragment else "")

    def cel_equal(self, other: Any) -> bool:
        if type(other) is not URL:
            raise EvaluationFailed("no such overload")
        return str(self) == str(other)


def parse(text: str) -> URL:
    """Read an absolute URL or an absolute path. Raises EvaluationFailed."""
    try:
        _parse(text, text, of_request=True)
        before, _, fragment = text.partition("#")
        return _parse(before, fragment, of_request=False)
    except _Unreadable as error:
        raise EvaluationFailed(f"URL parse error during conversion from string: {error}") from None


def problem_of(text: str) -> str:
    """Return why the text is no URL of a request; empty if it is."""
    try:
        _parse(text, "", of_request=True)
    except _Unreadable as error:
        return str(error)
    return ""


def _parse(text: str, fragment: str, *, of_request: bool) -> URL:
    try:
        url = _parts(text, of_request=of_request)
        if not of_request and fragment:
            _check_escapes(fragment)
            return URL(
                *(url.scheme, url.opaque, url.user, url.host, url.path, url.query, fragment),
                omits_host=url.omits_host,
                ends_with_question_mark=url.ends_with_question_mark,
            )
    except _Unreadable as error:
        raise _Unreadable(f"parse {quote(text)}: {error}") from None
    return url


def _parts(text: str, *, of_request: bool) -> URL:
    if _CONTROL.search(text):
        raise _Unreadable("net/url: invalid control character in URL")
    if not text and of_request:
        raise _Unreadable("empty url")
    if text == "*":
        return URL(path="*")
    if text.startswith(":"):
        raise _Unreadable("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme, rest = (found[1].lower(), text[found.end() :]) if found else ("", text)
    marked = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(scheme, opaque=rest, query=query, ends_with_question_mark=marked)
        if of_request:
            raise _Unreadable("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Unreadable("first path segment in URL cannot contain colon")
    user, host, omits = None, "", False
    if rest.startswith("//") and (scheme or (not of_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        omits = True
    _check_escapes(rest)
    return URL(scheme, "", user, host, rest, query, omits_host=omits, ends_with_question_mark=marked)


def _check_escapes(text: str) -> None:
    found = _BAD_ESCAPE.search(text)
    if found is not None:
        raise _Unreadable(f"invalid URL escape {quote(found[0])}")


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if _USER.fullmatch(user) is None:
        raise _Unreadable("net/url: invalid userinfo")
    for part in user.partition(":"):
        _check_escapes(part)
    return user, host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Unreadable("invalid IP-literal")
    if bracket == 0:
        return _bracketed_host(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        start = first if scheme in ("http", "https") else last
        _check_port(host[start:])
    return _unescaped_host(host)


def _bracketed_host(host: str) -> str:
    closing = host.rfind("]")
    if closing < 0:
        raise _Unreadable("missing ']' in host")
    _check_port(host[closing + 1 :])
    name, marker, zone = host[1:closing].partition("%25")
    name = _unescaped_host(name) + (_unescaped(marker + zone) if marker else "")
    try:
        address = parse_ip(name.partition("%")[0])
    except EvaluationFailed as error:
        reason = str(error).partition("conversion from string: ")[2]
        if reason:
            raise _Unreadable(f"invalid host: {reason}") from None
    else:
        if address.address.version == 4:
            raise _Unreadable("invalid IP-literal")
    return f"[{name}]{host[closing + 1 :]}"


def _check_port(text: str) -> None:
    if _PORT.fullmatch(text) is None:
        raise _Unreadable(f"invalid port {quote(text)} after host")


def _unescaped_host(host: str) -> str:
    escapes = [pattern.search(host) for pattern in (_BAD_ESCAPE, _ASCII_ESCAPE)]
    problems = [(found.start(), f"invalid URL escape {quote(found[0])}") for found in escapes if found is not None]
    if (char := _HOST_CHAR.search(host)) is not None:
        problems.append((char.start(), f"invalid character {quote(char[0])} in host name"))
    if problems:
        raise _Unreadable(min(problems)[1])
    return _unescaped(host)


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode(errors="replace") if "%" in text else text


def escaped_path(url: URL) -> str:
    """Return the path as it was written, if every character may stand there, and else escaped."""
    if _PATH_WELL_FORMED.fullmatch(url.path):
        return url.path
    if url.path == "*":
        return "*"
    return quote_from_bytes(unquote_to_bytes(url.path), safe=_PATH_SAFE)


def _host_and_port(url: URL) -> tuple[str, str]:
    host, colon, port = url.host.rpartition(":")
    if not colon or not (port.isdigit() or not port):
        host, port = url.host, ""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def _query(url: URL) -> dict[str, list[str]]:
    """Parameters with broken escapes or semicolons are dropped."""
    found: dict[str, list[str]] = {}
    for part in _parameters(url.query):
        name, _, value = part.partition("=")
        if _BAD_ESCAPE.search(part) is None:
            found.setdefault(_plain(name), []).append(_plain(value))
    return found


def _parameters(query: str) -> Iterable[str]:
    return (part for part in query.split("&") if part and ";" not in part)


def _plain(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")


URLS = (
    row(
        "string_to_url",
        "url(string) URL",
        parse,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row("url_get_scheme", "URL -> getScheme() string", lambda url: url.scheme),
    row("url_get_host", "URL -> getHost() string", lambda url: url.host),
    row("url_get_hostname", "URL -> getHostname() string", lambda url: _host_and_port(url)[0]),
    row("url_get_port", "URL -> getPort() string", lambda url: _host_and_port(url)[1]),
    row("url_get_escaped_path", "URL -> getEscapedPath() string", escaped_path),
    row("url_get_query", "URL -> getQuery() map(string, list(string))", _query),
    row("is_url_string", "isURL(string) bool", lambda text: not problem_of(text)),
)
