"""Where a webhook is called: at a URL or at a service of the cluster."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain
from pilothouse.machinery.validation.numbers import is_valid_port_num
from pilothouse.machinery.validation.urls import InvalidUrl, parse_url

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
    # Upstream hands name and namespace over in the wrong order, so that each is missed under the other's name.
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
