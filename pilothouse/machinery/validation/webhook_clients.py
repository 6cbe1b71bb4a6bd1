"""Validation of webhook addresses: a URL or a Service reference."""

from __future__ import annotations

import re
from urllib.parse import quote as escape
from urllib.parse import unquote

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain
from pilothouse.machinery.validation.pattern_format import is_valid_port_num

_FORM = "; desired format: https://host[/path]"
DEFAULT_PORT = 443


def default_client_config(config: Json) -> None:
    service = config.get("service")
    if service is not None and service.get("port") is None:
        service["port"] = DEFAULT_PORT


def validate_client_config(config: Json, path: Path) -> Errors:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from validate_webhook_url(url, path.child("url"))
    else:
        yield from validate_webhook_service(service or {}, path.child("service"))


def validate_webhook_url(raw: str, path: Path) -> Errors:
    try:
        url = parse_url(raw)
    except InvalidUrl as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not url.host:
        yield invalid(path, url.host, f"host must be specified{_FORM}")
    if url.user is not None:
        yield invalid(path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def validate_webhook_service(service: Json, path: Path) -> Errors:
    # Upstream passes name and namespace in the wrong order, so each is reported under the other's name.
    if not service.get("namespace"):
        yield required(path.child("name"))
    if not service.get("name"):
        yield required(path.child("namespace"))
    port = service.get("port") or 0
    if problems := is_valid_port_num(port):
        yield invalid(path.child("port"), port, "port is not valid: " + ", ".join(problems))
    if url_path := service.get("path"):
        yield from _validate_path(url_path, path.child("path"))


def _validate_path(url_path: str, path: Path) -> Errors:
    if url_path == "/":
        return
    if url_path == "//":
        yield invalid(path, url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        yield invalid(path, url_path, "must start with a '/'")
    for position, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid(path, url_path, f"segment[{position}] may not be empty")
            continue
        for problem in is_dns1123_subdomain(segment):
            yield invalid(path, url_path, f"segment[{position}]: {problem}")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_NOT_IN_HOST = re.compile(r"[\x00-\x20\"#/<>?@\\^`{|}\x7f]")
_USER_INFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PORT = re.compile(r":[0-9]*", re.ASCII)


class InvalidUrl(ValueError):
    """An invalid URL; the message is that of Go's url.Parse."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str = ""
    host: str = ""
    user: str | None = None
    path: str = ""
    query: str = ""
    fragment: str = ""


def parse_url(raw: str) -> Url:
    """Parse a URL like Go's url.Parse. Raises InvalidUrl."""
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
    match = _SCHEME.match(text)
    if match is None or text[match.end() : match.end() + 1] != ":":
        return "", text
    return match[0].lower(), text[match.end() + 1 :]


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
