"""HSTS: browsers are told to come by TLS only, for as long as the directives say."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.http import Filter, Handler, Request, Response


def with_hsts(directives: Sequence[str]) -> Filter:
    """Put the directives into every answer; where there are none, answers stay as they are."""
    header = (b"strict-transport-security", "; ".join(directives).encode())

    def wrap(handler: Handler) -> Handler:
        async def add_header(request: Request) -> Response:
            response = await handler(request)
            response.headers.append(header)
            return response

        return add_header if directives else handler

    return wrap
