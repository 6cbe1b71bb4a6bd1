"""Transport over HTTP and HTTPS with aiohttp. aiohttp is imported on first use."""

from __future__ import annotations

import base64
import errno
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.credentials import credential_source, ssl_context
from pilothouse.client.config.model import ClientConfig, ConfigError, Credentials
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, RequestTimedOut
from pilothouse.client.rest.transport import HttpRequest

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 30.0
KEEPALIVE = 30  # seconds of silence before the kernel probes the peer
_BUFFER = 1 << 18
_SOCKS = ("socks5", "socks5h")
_READS = ("GET", "HEAD")


class HttpTransport:
    """Sends each request with the configuration's credentials.

    Credentials are refreshed after the server rejects them. A new client certificate opens new connections.
    """

    def __init__(self, config: ClientConfig, clock: Clock = REAL_CLOCK) -> None:
        self._config = config
        self._source = credential_source(config, clock)
        self._session: aiohttp.ClientSession | None = None
        self._session_for: Credentials | None = None  # credentials of the session's connections
        self._fixed_headers = fixed_headers(config)
        proxy = config.proxy_url
        if proxy and urlsplit(proxy).scheme not in ("http", "https", *_SOCKS):
            raise ConfigError(f"unsupported scheme {urlsplit(proxy).scheme!r}, must be http, https, or socks5")
        self._proxy = proxy or _proxy_from_environment(config.host)
        self._by_socks = bool(self._proxy) and urlsplit(self._proxy).scheme in _SOCKS

    async def send(self, request: HttpRequest) -> HttpTransportResponse:
        import yarl

        credentials = await self._source.get()
        session = await self._session_with(credentials)
        with translated_errors():
            response = await session.request(
                request.method,
                yarl.URL(self._config.host.rstrip("/") + request.target, encoded=True),
                headers=self._headers(request.headers, credentials),
                data=request.body or None,
                timeout=_timeout(request.timeout),
                proxy=None if self._by_socks else self._proxy,
                allow_redirects=False,
                middlewares=() if request.method in _READS else (_sent_once,),
                server_hostname=self._config.tls.server_name or None,
            )
        if response.status == 401:
            self._source.rejected(credentials)
        return HttpTransportResponse(response)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _headers(self, headers: Mapping[str, str], credentials: Credentials) -> Any:
        import multidict

        merged = multidict.CIMultiDict(self._fixed_headers)
        if credentials.token:
            merged["authorization"] = f"Bearer {credentials.token}"
        merged.update(headers)
        return merged

    async def _session_with(self, credentials: Credentials) -> aiohttp.ClientSession:
        current, new = self._session_for, credentials
        unchanged = current is not None and (current.cert_data, current.key_data) == (new.cert_data, new.key_data)
        if self._session is None or not unchanged:
            await self.close()
            self._session = self._new_session(credentials)
            self._session_for = credentials
        return self._session

    def _new_session(self, credentials: Credentials) -> aiohttp.ClientSession:
        import aiohttp

        connector = self._new_connector(credentials)
        return aiohttp.ClientSession(
            connector=connector,
            read_bufsize=_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def _new_connector(self, credentials: Credentials) -> aiohttp.BaseConnector:
        import aiohttp

        secure = self._config.host.startswith("https:")
        context = ssl_context(self._config.tls, credentials) if secure else None
        if self._proxy and self._by_socks:
            from pilothouse.client.rest.socks import SocksConnector

            return SocksConnector(self._proxy, context, self._config.tls.server_name)
        return aiohttp.TCPConnector(ssl=context or False, limit=0, socket_factory=_keepalive_socket)


class HttpTransportResponse:
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
    import aiohttp

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


def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT)


def fixed_headers(config: ClientConfig) -> list[tuple[str, str]]:
    """Return the headers common to all requests: impersonation, basic authentication, compression."""
    impersonate = config.impersonate
    headers = [("accept-encoding", "identity" if config.disable_compression else "gzip")]
    headers += [("impersonate-user", impersonate.user)] if impersonate.user else []
    headers += [("impersonate-uid", impersonate.uid)] if impersonate.uid else []
    headers += [("impersonate-group", group) for group in impersonate.groups]
    headers += [(f"impersonate-extra-{key}", value) for key, value in impersonate.extra]
    if config.username:
        basic = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        headers.append(("authorization", f"Basic {basic}"))
    return headers


def _proxy_from_environment(host: str) -> str | None:
    """Return the proxy of HTTP_PROXY, HTTPS_PROXY and NO_PROXY. aiohttp would read these, and .netrc, on every
    request."""
    url = urlsplit(host)
    if url.hostname is None or proxy_bypass(url.netloc):
        return None
    return getproxies().get(url.scheme)


def _keepalive_socket(address: Any) -> socket.socket:
    """Create a socket with TCP keepalive: a dead peer is detected within two minutes, even on an idle watch."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family=family, type=kind, proto=protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), KEEPALIVE)
    return sock
