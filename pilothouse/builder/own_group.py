"""Requests to this server's own group go to it directly: its controllers need no registration, and no network."""

from __future__ import annotations

from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport


class OwnGroupTransport:
    """Is a Transport."""

    def __init__(self, root: str, here: Transport, elsewhere: Transport) -> None:
        self._root = root
        self._here = here
        self._elsewhere = elsewhere

    async def send(self, request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0]
        own = path == self._root or path.startswith(f"{self._root}/")
        return await (self._here if own else self._elsewhere).send(request)

    async def close(self) -> None:
        """The transports belong to others."""
