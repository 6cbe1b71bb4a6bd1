"""Connections through an HTTP, HTTPS or SOCKS5 proxy, with aiohttp."""

from __future__ import annotations

import errno
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import aiohttp
import multidict
import yarl

from pilothouse.client.config.model import ClientConfig
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, RequestTimedOut
from pilothouse.client.rest.http_transport import CONNECT_TIMEOUT, SOCKS, HeaderFields
from pilothouse.client.rest.socks import SocksConnector
from pilothouse.client.rest.transport import HttpRequest

_BUFFER = 1 << 18
_READS = ("GET", "HEAD")


class ProxiedConnections:
    """Connections to one server through one proxy."""

    def __init__(self, config: ClientConfig, context: ssl.SSLContext | None, proxy: str) -> None:
        self._config = config
        by_socks = urlsplit(proxy).scheme in SOCKS
        self._proxy = None if by_socks else proxy
        connector = (
            SocksConnector(proxy, context, config.tls.server_name)
            if by_socks
            else aiohttp.TCPConnector(ssl=context or False, limit=0)
        )
        self._session = aiohttp.ClientSession(
            connector=connector, read_bufsize=_BUFFER, cookie_jar=aiohttp.DummyCookieJar()
        )

    async def send(self, request: HttpRequest, headers: HeaderFields) -> ProxiedResponse:
        with translated_errors():
            response = await self._session.request(
                request.method,
                yarl.URL(self._config.host.rstrip("/") + request.target, encoded=True),
                headers=multidict.CIMultiDict(headers),
                data=request.body or None,
                timeout=aiohttp.ClientTimeout(total=request.timeout, sock_connect=CONNECT_TIMEOUT),
                proxy=self._proxy,
                allow_redirects=False,
                middlewares=() if request.method in _READS else (_sent_once,),
                server_hostname=self._config.tls.server_name or None,
            )
        return ProxiedResponse(response)

    async def close(self) -> None:
        await self._session.close()


class ProxiedResponse:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: dict[str, str] = {}
        for name, value in response.headers.items():
            name = name.lower()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    async def read(self) -> bytes:
        with translated_errors():
            return await self._response.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._response.content
        while True:
            with translated_errors():
                chunk = await content.readany()
            if not chunk:
                return
            yield chunk

    async def close(self) -> None:
        self._response.close()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Map aiohttp's exceptions to ConnectionFailed and its subclasses."""
    try:
        yield
    except TimeoutError as error:
        raise RequestTimedOut(str(error) or "the request timed out") from error
    except aiohttp.ClientConnectorError as error:
        refused = error.errno == errno.ECONNREFUSED  # aiohttp before 3.14 has no os_error for a bad certificate
        raise (ConnectionRefused if refused else ConnectionFailed)(str(error)) from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise ConnectionFailed(str(error) or type(error).__name__) from error


async def _sent_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Disable aiohttp's retry of PUT and DELETE after a broken connection.

    The first attempt may have taken effect, and the response to a retry would hide that. aiohttp does not retry after
    exceptions of other libraries.
    """
    with translated_errors():
        return await send(request)
