"""Timeout: a request that is not long-running is answered in time, with 504 if need be."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.filters.long_running import is_long_running
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.machinery.errors import Timeout


def with_timeout(limit: float) -> Filter:
    def wrap(handler: Handler) -> Handler:
        async def answer_in_time(request: Request) -> Response:
            if is_long_running(request.info):
                return await handler(request)
            try:
                async with asyncio.timeout(limit):
                    return await handler(request)
            except TimeoutError:
                message = f"request did not complete within requested timeout - {limit:g}s"
                raise Timeout(message, details={}) from None

        return answer_in_time

    return wrap
