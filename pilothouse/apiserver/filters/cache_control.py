"""Cache control: answers depend on who asks and on the moment, so nobody in between may keep them.

A handler that knows better says so itself.
"""

from __future__ import annotations

from pilothouse.apiserver.http import Handler, Request, Response

_HEADER = (b"cache-control", b"no-cache, private")


def with_cache_control(handler: Handler) -> Handler:
    async def control(request: Request) -> Response:
        response = await handler(request)
        if b"cache-control" not in dict(response.headers):
            response.headers.append(_HEADER)
        return response

    return control
