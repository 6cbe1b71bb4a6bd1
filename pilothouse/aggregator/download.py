"""Downloads of documents from aggregated servers, through their in-process handler.

A download is bounded in time and size, whatever the server does.
"""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Handler, Request, Stream
from pilothouse.apiserver.request_info import request_info
from pilothouse.apiserver.streams import close_stream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.status_error import StatusError

TIMEOUT = 5.0
LIMIT = 32 * 1024 * 1024


class DownloadFailed(Exception):
    """The download failed; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Download:
    """A document to download, and the requesting user."""

    path: str
    user: User
    accept: str = "application/json"
    etag: str = ""
    """ETag of the known document; an unchanged document is answered with 304."""
    timeout: float = TIMEOUT

    async def get(self, handler: Handler) -> DownloadAnswer:
        """Return the answer, including error statuses. Raises DownloadFailed without an answer."""
        try:
            async with asyncio.timeout(self.timeout):
                request = self._request()
                response = await handler(request)
                headers = {name: value.decode("latin-1") for name, value in reversed(response.headers)}
                body = response.body if isinstance(response.body, bytes) else await _read(response.body)
                return DownloadAnswer(response.status, body, headers.get(b"content-type", ""), headers.get(b"etag", ""))
        except TimeoutError:
            raise DownloadFailed(f"{self.path}: no answer within {self.timeout:g} s") from None
        except StatusError as refusal:
            return DownloadAnswer(refusal.code, b"", "", "")
        except DownloadFailed:
            raise
        except Exception as error:  # aggregated servers can fail in any way; no failure may end the caller
            raise DownloadFailed(f"{self.path}: {error!r}") from error

    def _request(self) -> Request:
        headers = [(b"accept", self.accept.encode())]
        if self.etag:
            headers.append((b"if-none-match", self.etag.encode()))
        path, _, query = self.path.partition("?")
        request = Request("GET", path, query, headers, _no_body, user=self.user)
        request.info = request_info(request)
        return request


@dataclass(frozen=True, slots=True)
class DownloadAnswer:
    status: int
    body: bytes
    content_type: str
    etag: str


async def _read(stream: Stream) -> bytes:
    parts = bytearray()
    try:
        async for part in stream:
            parts += part
            if len(parts) > LIMIT:
                raise DownloadFailed(f"the answer is longer than {LIMIT} bytes")
    finally:
        await close_stream(stream)
    return bytes(parts)


async def _no_body(limit: int) -> bytes:
    return b""
