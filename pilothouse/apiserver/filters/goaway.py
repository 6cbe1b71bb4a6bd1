"""Go away: now and then a client is made to connect anew, so that load spreads over replicas that have come back."""

from __future__ import annotations

from random import random

from pilothouse.apiserver.http import Filter, Handler, Request, Response


def with_probabilistic_goaway(chance: float) -> list[Filter]:
    """Of HTTP/2 requests, which share connections that would last for ever, so many end theirs when all on it are
    answered. Without a chance there is no filter."""

    def wrap(handler: Handler) -> Handler:
        async def send_away(request: Request) -> Response:
            response = await handler(request)
            if request.http_version == "2" and random() < chance:  # nobody gains by foreseeing it
                response.headers.append((b"connection", b"close"))
            return response

        return send_away

    return [wrap] if chance else []
