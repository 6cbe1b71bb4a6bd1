"""CORS: allow browsers of the configured origins to call the API. Disabled without origins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.apiserver.http import Filter, Handler, Headers, Request, Response

_METHODS = b"POST, GET, OPTIONS, PUT, DELETE, PATCH"
_ALLOWED_HEADERS = (
    b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
_EXPOSED_HEADERS = b"Date"


def with_cors(origins: Sequence[str]) -> Filter:
    def wrap(handler: Handler) -> Handler:
        if not origins:
            return handler
        is_allowed = origin_matcher(origins)

        async def share(request: Request) -> Response:
            origin = request.header(b"origin")
            if not origin or not is_allowed(origin):
                return await handler(request)
            if request.method == "OPTIONS":
                return Response(204, b"", _headers(origin))
            response = await handler(request)
            response.headers.extend(_headers(origin))
            return response

        return share

    return wrap


def origin_matcher(origins: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate that matches origins against the patterns."""
    if not origins:
        return lambda _: False
    # Not imported by servers without origins.
    from pilothouse.machinery.cel.patterns import matcher

    allowed = [matcher(origin) for origin in origins]
    return lambda origin: any(matches(origin) for matches in allowed)


def _headers(origin: str) -> Headers:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"access-control-allow-credentials", b"true"),
    ]
