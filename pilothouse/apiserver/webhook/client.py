"""Calls to webhooks: a review goes out as JSON over TLS, and its answer comes back, or WebhookCallFailed says in
client-go's words why not.

Connections are kept and shared by all configurations that mean the same endpoint. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import orjson

from pilothouse.apiserver.webhook.certificate_names import is_wrong_name, wrong_name_problem
from pilothouse.apiserver.webhook.connections import Attempt, attempt, open_session
from pilothouse.apiserver.webhook.credentials import FindCredentials, WebhookCredentials, anonymous
from pilothouse.apiserver.webhook.endpoint import Endpoint, endpoint_of
from pilothouse.apiserver.webhook.failures import (
    DEADLINE_EXCEEDED,
    WebhookCallFailed,
    connect_problem,
    connection_lost,
    refused,
)
from pilothouse.apiserver.webhook.service_resolver import ServiceResolver, ServiceUnresolved
from pilothouse.machinery.codec.decoder import BodyError, interpret
from pilothouse.machinery.codec.json import JsonError, parse_untyped
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import format_duration
from pilothouse.machinery.errors import from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    import aiohttp

_MAX_ENDPOINTS = 200
_MAX_ANSWER = 64 * 1024 * 1024
_MAX_RETRIES = 10
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "Accept-Encoding": "gzip",
    "User-Agent": "kube-apiserver-admission",
}


@dataclass(slots=True)
class _Pool:
    session: aiohttp.ClientSession
    credentials: WebhookCredentials | None = None
    in_use: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    session: aiohttp.ClientSession
    url: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    content_type: str
    retry_after: str
    body: bytes

    @property
    def asks_for_retry(self) -> bool:
        return (self.code == 429 or self.code >= 500) and self.retry_after.isdigit()


class WebhookClients:
    def __init__(
        self,
        resolver: ServiceResolver,
        *,
        credentials: FindCredentials = anonymous,
        max_answer: int = _MAX_ANSWER,
    ) -> None:
        self._resolver = resolver
        self._credentials = credentials
        self._max_answer = max_answer
        self._pools: OrderedDict[Endpoint, _Pool] = OrderedDict()
        """Least recently used first."""

    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        """`config` is a WebhookClientConfig. Raises WebhookCallFailed. The timeout, in seconds, is for all of it; the
        webhook is told."""
        endpoint = endpoint_of(config)
        url = f"{endpoint.url}?timeout={quote_plus(format_duration(round(timeout * 1e9)))}"
        pool = self._pool(endpoint)
        pool.in_use += 1
        try:
            await self._drop_oldest_idle()
            async with asyncio.timeout(timeout):
                own = await pool.credentials.headers() if pool.credentials else {}
                call = _Call(pool.session, url, orjson.dumps(body), {**_HEADERS, **own})
                return _decoded(await self._send_patiently(call))
        except TimeoutError:
            raise WebhookCallFailed(f"Post {quote(url)}: {DEADLINE_EXCEEDED}") from None
        finally:
            pool.in_use -= 1

    async def close(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.session.close()

    def _pool(self, endpoint: Endpoint) -> _Pool:
        if endpoint not in self._pools:
            credentials = self._credentials(endpoint.target)
            certificate = credentials.client_certificate if credentials else b""
            self._pools[endpoint] = _Pool(open_session(endpoint, self._resolver, certificate), credentials)
        self._pools.move_to_end(endpoint)
        return self._pools[endpoint]

    async def _drop_oldest_idle(self) -> None:
        """One at most, since each call adds one at most. What is in use stays, however many that are."""
        if len(self._pools) <= _MAX_ENDPOINTS:
            return
        oldest = next((each for each, pool in self._pools.items() if not pool.in_use), None)
        if oldest is not None:
            await self._pools.pop(oldest).session.close()

    async def _send_patiently(self, call: _Call) -> _Answer:
        """A webhook may ask to be asked again later."""
        for _ in range(_MAX_RETRIES):
            answer = await self._send(call)
            if not answer.asks_for_retry:
                return answer
            await asyncio.sleep(int(answer.retry_after))
        return await self._send(call)

    async def _send(self, call: _Call) -> _Answer:
        """Once more when a kept connection turns out to be closed by the other side."""
        import aiohttp

        current = Attempt()
        attempt.set(current)
        try:
            return await self._exchange(call)
        except ServiceUnresolved as error:
            raise WebhookCallFailed(f"Post {quote(call.url)}: {error}") from None
        except aiohttp.ClientConnectorCertificateError as error:
            problem = await _certificate_problem(error, current.dialled)
            raise WebhookCallFailed(f"Post {quote(call.url)}: {problem}") from None
        except aiohttp.ClientConnectorError as error:
            problem = connect_problem(error.os_error, current.dialled)
            raise WebhookCallFailed(f"Post {quote(call.url)}: {problem}") from None
        except (aiohttp.ClientError, OSError) as error:
            if current.reused and isinstance(error, aiohttp.ServerDisconnectedError | ConnectionError):
                return await self._send(call)
            raise WebhookCallFailed(f"Post {quote(call.url)}: {connection_lost(error)}") from None

    async def _exchange(self, call: _Call) -> _Answer:
        import aiohttp
        import yarl

        response = await call.session.post(
            yarl.URL(call.url, encoded=True),
            data=call.body,
            headers=call.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        async with response:
            content = await self._read(response)
            kind = response.headers.get("content-type", "")
            return _Answer(response.status, kind, response.headers.get("retry-after", ""), content)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        import aiohttp

        parts, size = [], 0
        try:
            async for chunk in response.content.iter_any():
                parts.append(chunk)
                size += len(chunk)
                if size > self._max_answer:
                    raise WebhookCallFailed(f"the answer is larger than {self._max_answer} bytes")
        except aiohttp.ClientError:
            why = "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
            raise WebhookCallFailed(why) from None
        return b"".join(parts)


async def _certificate_problem(error: aiohttp.ClientConnectorCertificateError, dialled: str) -> str:
    cause = error.certificate_error
    if is_wrong_name(cause):
        return await wrong_name_problem(dialled, error.host)
    return connect_problem(cause, dialled)


def _decoded(answer: _Answer) -> Json:
    if not 200 <= answer.code <= 206:
        raise refused(answer.code, answer.content_type, answer.body)
    if not answer.body:
        kind = answer.content_type or "application/json"
        raise WebhookCallFailed(f"0-length response with status code: {answer.code} and content type: {kind}")
    try:
        found = parse_untyped(answer.body).value
        kind_of = interpret(found)
    except JsonError as error:
        raise WebhookCallFailed(f"couldn't get version/kind; json parse error: {error}") from None
    except BodyError as error:
        raise WebhookCallFailed(str(error)) from None
    if kind_of.kind == "Status" and found.get("status") != "Success":
        status = from_status(found)
        raise WebhookCallFailed(status.message, status=status)
    return found or {}
