"""The checks of upstream's router (go-restful) before a handler runs.

The router compares media types by name and responds with an error of its own. The handler then negotiates by parameters
and quality (`negotiation.py`), responds with other errors, and warns of deprecated versions first. A request whose
Accept header fails both checks must get the router's error, so both are made; both are cached by header.
"""

from __future__ import annotations

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.errors import MethodNotAllowed, NotAcceptable, NotFound, UnsupportedMediaType
from pilothouse.machinery.server_errors import METHOD_NOT_ALLOWED, RESOURCE_NOT_FOUND

ANYTHING = ("*/*",)


def get_route(handler: Handler, produces: tuple[str, ...], *, consumes: tuple[str, ...] = ANYTHING) -> Handler:
    """Return a read-only route. The content type is checked even without a body, as upstream."""

    async def route(request: Request) -> Response:
        if request.method != "GET":
            raise method_not_allowed()
        if request.header(b"content-type"):
            check_content_type(request, consumes)
        check_accept(request, produces)
        return await handler(request)

    return route


def resource_not_found() -> NotFound:
    return NotFound(RESOURCE_NOT_FOUND, details={})


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed(METHOD_NOT_ALLOWED, details={})


def check_accept(request: Request, produced: tuple[str, ...]) -> None:
    """Raises NotAcceptable if the client accepts none of the media types by name, nor */*."""
    if not _is_one_named(request.header(b"accept") or "*/*", produced):
        available = ", ".join(produced)
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}", details={})


def check_content_type(request: Request, consumed: tuple[str, ...]) -> None:
    """Raises UnsupportedMediaType if the body has none of the media types."""
    if consumed != ANYTHING and not set(consumed).intersection(_names(request.header(b"content-type"))):
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})


@bounded_cache(entries=1024, key_bytes=512, chosen=1)
def _is_one_named(accept: str, produced: tuple[str, ...]) -> bool:
    return produced == ANYTHING or any(name == "*/*" or name in produced for name in _names(accept))


def _names(header: str) -> list[str]:
    return [part.partition(";")[0].strip(" ") for part in header.split(",")]
