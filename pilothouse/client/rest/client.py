"""Requests with everything around them: rate limit, retries, typed errors, warnings.

A request is sent again when the server asks for it (429 or 5xx with Retry-After), and a GET also when its connection
broke off; ten times at most. Everything else that fails is raised at once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlencode

import orjson

from pilothouse.client import garbage_collection
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.errors import (
    ConnectionFailed,
    ConnectionRefused,
    InvalidResponse,
    RequestTimedOut,
    error_from,
)
from pilothouse.client.rest.metrics import request_metrics
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport
from pilothouse.machinery.names import GroupVersion, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

MAX_RETRIES = 10
JSON = "application/json"
BIG = 1 << 20

T = TypeVar("T")


class Client:
    """`resource` is the way in for objects; `get_json`, `request` and `stream` are for everything else.

    >>> from pilothouse.client import connect
    >>> async with connect(api.config()) as client:
    ...     print((await client.get_json("/version"))["major"])
    1
    """

    def __init__(
        self,
        transport: Transport,
        *,
        rate_limiter: TokenBucket | None = None,
        user_agent: str = "pilothouse",
        timeout: float | None = None,
        on_warning: WarningHandler | None = None,
        clock: Clock = REAL_CLOCK,
        host: str = "none",
    ) -> None:
        """`host`: under which the requests are counted."""
        self.transport = transport
        self._rate_limiter = rate_limiter
        self._user_agent = user_agent
        self._timeout = timeout
        self._on_warning = on_warning or log_each_once()
        self._clock = clock
        self._host = host

    def resource(self, api_version: str, plural: str, *, namespace: str = "") -> ResourceClient:
        """`client.resource("apps/v1", "deployments", namespace="default")`; without a namespace, all of them."""
        return self.for_resource(GroupVersion.parse(api_version).resource(plural), namespace=namespace)

    def for_resource(self, resource: GroupVersionResource, *, namespace: str = "") -> ResourceClient:
        """Return the client of one resource, in a namespace or in all."""
        return ResourceClient(self, resource, namespace=namespace)

    async def get_json(self, path: str, params: Mapping[str, str] | None = None, *, accept: str = JSON) -> Json:
        """Return the parsed answer to a GET of this path. Raises StatusError."""
        return await self.request("GET", path, params=params, accept=accept)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> Json:
        """The answer as JSON. `timeout`: seconds for each time it is sent, if not the client's own.

        Raises StatusError, ConnectionFailed or InvalidResponse.
        """
        data = b"" if body is None else orjson.dumps(body)
        headers = {"accept": accept, **({"content-type": content_type} if data else {})}
        limit = self._timeout if timeout is None else timeout
        request = HttpRequest(method, target(path, params), self._with_agent(headers), data, limit)
        answer = await self._read(request)
        try:
            found = parse(answer)
        except orjson.JSONDecodeError as error:
            raise InvalidResponse(f"{method} {path} did not answer JSON: {error}") from None
        if not isinstance(found, dict):
            raise InvalidResponse(f"{method} {path} answered no object")
        return found

    async def request_text(self, path: str, params: Mapping[str, str] | None = None) -> str:
        """The answer as text: logs, health checks, metrics."""
        request = HttpRequest("GET", target(path, params), self._with_agent({"accept": "*/*"}), b"", self._timeout)
        return (await self._read(request)).decode("utf-8", "replace")

    async def stream(
        self, path: str, params: Mapping[str, str], *, accept: str = JSON, timeout: float | None = None
    ) -> HttpResponse:
        """A successful answer whose body has not been read."""
        request = HttpRequest("GET", target(path, params), self._with_agent({"accept": accept}), b"", timeout)
        return await self._with_retries(request, lambda again: self._send(request, again=again))

    async def close(self) -> None:
        """Close the connections. Nothing can be asked afterwards."""
        await self.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _with_agent(self, headers: dict[str, str]) -> dict[str, str]:
        return {"user-agent": self._user_agent, **headers}

    async def _read(self, request: HttpRequest) -> bytes:
        metrics, to, start = request_metrics(), (request.method, self._host), self._clock.now()

        async def attempt(again: bool) -> bytes:
            metrics.sent(*to, len(request.body))
            response = await self._send(request, again=again)
            try:
                return await response.read()
            finally:
                await response.close()

        try:
            body = await self._with_retries(request, attempt)
        finally:
            metrics.done(*to, self._clock.now() - start)
        metrics.received(*to, len(body))
        return body

    async def _with_retries(self, request: HttpRequest, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """`attempt` is told whether it is not the first."""
        for tried in range(MAX_RETRIES):
            try:
                return await attempt(tried > 0)
            except (StatusError, ConnectionFailed) as error:
                delay = _retry_delay(request, error)
                if delay is None:
                    raise
                logger.debug("%s %s: %s; again in %d s", request.method, request.target, error, delay)
            await self._clock.sleep(delay)
        return await attempt(True)

    async def _send(self, request: HttpRequest, *, again: bool) -> HttpResponse:
        """One attempt. Raises the error that the answer stands for if it is no success."""
        if self._rate_limiter is not None:
            start = self._clock.now()
            await self._rate_limiter.wait()
            request_metrics().throttled(request.method, self._host, self._clock.now() - start)
        response = await self._answer(request, again=again)
        for text in warnings_in(response.headers):
            self._on_warning(text)
        if response.status < 300:
            return response
        try:
            body = await response.read()
            request_metrics().received(request.method, self._host, len(body))
            raise error_from(response.status, response.headers, body)
        finally:
            await response.close()

    async def _answer(self, request: HttpRequest, *, again: bool) -> HttpResponse:
        code = "<error>"
        try:
            response = await self.transport.send(request)
            code = str(response.status)
            return response
        finally:
            request_metrics().attempted(request.method, self._host, code, again=again)


def parse(data: bytes) -> Any:
    """Raises orjson.JSONDecodeError."""
    if len(data) < BIG:
        return orjson.loads(data)
    with garbage_collection.paused(len(data)):
        return orjson.loads(data)


def target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _retry_delay(request: HttpRequest, error: StatusError | ConnectionFailed) -> int | None:
    """How long to wait before sending the request again; None if it must not be."""
    if isinstance(error, StatusError):
        overloaded = error.code == HTTPStatus.TOO_MANY_REQUESTS or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        return error.retry_after_seconds if overloaded and "retryAfterSeconds" in (error.details or {}) else None
    # A server that refuses connections is for the caller to wait for.
    lost = request.method == "GET" and not isinstance(error, (ConnectionRefused, RequestTimedOut))
    return 1 if lost else None


WarningHandler: TypeAlias = Callable[[str], None]

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Mapping[str, str]) -> list[str]:
    """The texts of the 299 warnings in a response's headers."""
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(headers.get("warning", ""))]


def log_each_once() -> WarningHandler:
    seen: set[str] = set()

    def handle(text: str) -> None:
        if text not in seen:
            seen.add(text)
            logger.warning("Warning: %s", text)

    return handle
