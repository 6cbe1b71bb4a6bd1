"""GOAWAY: close random HTTP/2 connections so that clients reconnect and load spreads over restarted replicas."""

from __future__ import annotations

from random import random

from pilothouse.apiserver.http import Filter, Handler, Request, Response


def with_probabilistic_goaway(chance: float) -> list[Filter]:
    """Close the connection of an HTTP/2 request with this probability, after all its requests are answered. No
    filter if the probability is 0."""

    def wrap(handler: Handler) -> Handler:
        async def send_away(request: Request) -> Response:
            response = await handler(request)
            if request.http_version == "2" and random() < chance:  # predictability does not matter
                response.headers.append((b"connection", b"close"))
            return response

        return send_away

    return [wrap] if chance else []
