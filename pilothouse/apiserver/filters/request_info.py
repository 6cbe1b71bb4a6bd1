"""Request info: parse method and path once for all later filters and handlers."""

from __future__ import annotations

from pilothouse.apiserver.filters.internal_error import asked_url, internal_error
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.request_info import UndeterminedRequest, request_info


def with_request_info(handler: Handler) -> Handler:
    async def inform(request: Request) -> Response:
        try:
            if request.query_string:
                request.info = await offload_by_size(len(request.query_string), request_info, request)
            else:
                request.info = request_info(request)
        except UndeterminedRequest as error:
            request.is_determined = False
            return internal_error(request, f"failed to create RequestInfo: {error}, {asked_url(request)}")
        return await handler(request)

    return inform
