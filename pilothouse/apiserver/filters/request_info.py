"""Request info: what the request asks for, found out once for everything behind it."""

from __future__ import annotations

from pilothouse.apiserver.beside_the_loop import by_size
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.request_info import request_info


def with_request_info(handler: Handler) -> Handler:
    async def inform(request: Request) -> Response:
        request.info = await by_size(len(request.query_string), request_info, request)
        return await handler(request)

    return inform
