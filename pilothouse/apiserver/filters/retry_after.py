"""Retry after: respond with 429 during shutdown, so that clients retry elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pilothouse.apiserver.http import Filter, Handler, Request, Response, text

_SECONDS = 5
_HEALTH = ("/readyz", "/livez", "/healthz")


def with_retry_after(is_terminating: Callable[[], bool]) -> Filter:
    """Reject new requests, except health checks, which must report the shutdown."""

    def wrap(handler: Handler) -> Handler:
        def turn_away(request: Request) -> Awaitable[Response]:
            if not is_terminating() or request.path.startswith(_HEALTH):
                return handler(request)
            return _come_again(request)

        return turn_away

    return wrap


async def _come_again(request: Request) -> Response:
    message = "The apiserver is shutting down, please try again later."
    return text(429, message, retry_after=_SECONDS, connection="close")
