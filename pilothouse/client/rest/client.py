"""REST client: rate limit, retries, typed errors, warnings.

A request is retried up to ten times when the server requests a retry (429 or 5xx with Retry-After). A GET is also
retried when its connection broke. Other failures are raised immediately.
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
from pilothouse.client.rest import errors
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
    """Kubernetes API client. `resource` accesses objects; `get_json`, `request` and `stream` access arbitrary paths.

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
        """`host` labels the request metrics."""
        self.transport = transport
        self._rate_limiter = rate_limiter
        self._user_agent = user_agent
        self._timeout = timeout
        self._on_warning = on_warning or log_each_once()
        self._clock = clock
        self._host = host

    @property
    def host(self) -> str:
        """Host and port of the API server; "none" if the client has no connection of its own."""
        return self._host

    def resource(self, api_version: str, plural: str, *, namespace: str = "") -> ResourceClient:
        """Return a client for `resource("apps/v1", "deployments", namespace="default")`. No namespace means all
        namespaces."""
        return self.for_resource(GroupVersion.parse(api_version).resource(plural), namespace=namespace)

    def for_resource(self, resource: GroupVersionResource, *, namespace: str = "") -> ResourceClient:
        """Return a client of a resource, in the namespace or in all namespaces."""
        return ResourceClient(self, resource, namespace=namespace)

    async def get_json(self, path: str, params: Mapping[str, str] | None = None, *, accept: str = JSON) -> Json:
        """Send a GET and return the JSON body. Raises StatusError."""
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
        """Send a request and return the JSON body.

        `timeout` limits each attempt (seconds); the default is the client's. Raises StatusError, ConnectionFailed or
        InvalidResponse.
        """
        data = b"" if body is None else orjson.dumps(body)
        headers = {"accept": accept, **({"content-type": content_type} if data else {})}
        limit = self._timeout if timeout is None else timeout
        request = HttpRequest(method, target(path, params), self._with_agent(headers), data, limit)
        response_body = await self._read(request)
        try:
            value = parse(response_body)
        except orjson.JSONDecodeError as error:
            raise errors.InvalidResponse(f"{method} {path} did not answer JSON: {error}") from None
        if not isinstance(value, dict):
            raise errors.InvalidResponse(f"{method} {path} answered no object")
        return value

    async def request_text(self, path: str, params: Mapping[str, str] | None = None) -> str:
        """Send a GET and return the body as text: logs, health checks, metrics."""
        request = HttpRequest("GET", target(path, params), self._with_agent({"accept": "*/*"}), b"", self._timeout)
        return (await self._read(request)).decode("utf-8", "replace")

    async def stream(
        self, path: str, params: Mapping[str, str], *, accept: str = JSON, timeout: float | None = None
    ) -> HttpResponse:
        """Send a GET and return the successful response with an unread body."""
        request = HttpRequest("GET", target(path, params), self._with_agent({"accept": accept}), b"", timeout)
        return await self._with_retries(request, lambda again: self._send(request, again=again))

    async def close(self) -> None:
        """Close all connections. The client must not be used afterwards."""
        await self.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _with_agent(self, headers: dict[str, str]) -> dict[str, str]:
        return {"user-agent": self._user_agent, **headers}

    async def _read(self, request: HttpRequest) -> bytes:
        metrics, labels, start = request_metrics(), (request.method, self._host), self._clock.now()

        async def attempt(again: bool) -> bytes:
            metrics.sent(*labels, len(request.body))
            response = await self._send(request, again=again)
            try:
                return await response.read()
            finally:
                await response.close()

        try:
            body = await self._with_retries(request, attempt)
        finally:
            metrics.done(*labels, self._clock.now() - start)
        metrics.received(*labels, len(body))
        return body

    async def _with_retries(self, request: HttpRequest, attempt: Callable[[bool], Awaitable[T]]) -> T:
        """Run `attempt(is_retry)` until it succeeds or must not be retried."""
        for tried in range(MAX_RETRIES):
            try:
                return await attempt(tried > 0)
            except (StatusError, errors.ConnectionFailed) as error:
                delay = _retry_delay(request, error)
                if delay is None:
                    raise
                logger.debug("%s %s: %s; again in %d s", request.method, request.target, error, delay)
            await self._clock.sleep(delay)
        return await attempt(True)

    async def _send(self, request: HttpRequest, *, again: bool) -> HttpResponse:
        """Send one attempt. Raises the response's error unless the response is successful."""
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
            raise errors.error_from(response.status, response.headers, body)
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
    """Parse JSON without garbage collection of large results. Raises orjson.JSONDecodeError."""
    if len(data) < BIG:
        return orjson.loads(data)
    with garbage_collection.paused(len(data)):
        return orjson.loads(data)


def target(path: str, params: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _retry_delay(request: HttpRequest, error: StatusError | errors.ConnectionFailed) -> int | None:
    """Return the seconds to wait before a retry; None if the request must not be retried."""
    if isinstance(error, StatusError):
        overloaded = error.code == HTTPStatus.TOO_MANY_REQUESTS or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        return error.retry_after_seconds if overloaded and "retryAfterSeconds" in (error.details or {}) else None
    # Waiting for a server that refuses connections is up to the caller.
    lost = request.method == "GET" and not isinstance(error, (errors.ConnectionRefused, errors.RequestTimedOut))
    return 1 if lost else None


WarningHandler: TypeAlias = Callable[[str], None]

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Mapping[str, str]) -> list[str]:
    """Return the texts of the 299 warnings in the response headers."""
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(headers.get("warning", ""))]


def log_each_once() -> WarningHandler:
    seen: set[str] = set()

    def handle(text: str) -> None:
        if text not in seen:
            seen.add(text)
            logger.warning("Warning: %s", text)

    return handle
