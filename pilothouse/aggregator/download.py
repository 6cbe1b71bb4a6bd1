"""Documents of other servers, asked for in this process through the handler that reaches them.

A download ends within its timeout and holds no more than its limit, whatever the other side does.
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
    """There was no answer, or one that is of no use; the text says why."""


@dataclass(frozen=True, slots=True)
class Download:
    """A document to ask for, and the user to ask as."""

    path: str
    user: User
    accept: str = "application/json"
    etag: str = ""
    """Of what is known already; an answer with status 304 then says that it has not changed."""
    timeout: float = TIMEOUT

    async def get(self, handler: Handler) -> DownloadAnswer:
        """Raises DownloadFailed when there is no answer; one with an error's status is an answer."""
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
        except Exception as error:  # the other server may do anything; none of it may end who asks
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
