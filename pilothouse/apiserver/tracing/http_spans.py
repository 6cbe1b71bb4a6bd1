"""Spans of incoming and outgoing requests, with the names and attributes of upstream's HTTP and gRPC instrumentation
(OpenTelemetry conventions)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from pilothouse.apiserver.filters.internal_error import asked_url
from pilothouse.apiserver.filters.request_log import protocol_version
from pilothouse.apiserver.http import Headers, Request, Response, source_ips
from pilothouse.apiserver.streams import UntilEnd
from pilothouse.apiserver.tracing.spans import CLIENT, CURRENT, Span, SpanAttributes, Value

_FAILED: Final = 500


def span_name(request: Request) -> str:
    """Return the method, followed by the path template of a resource."""
    info = request.info
    if not info.is_resource:
        return request.method
    path = [info.prefix, info.group, info.version]
    if info.namespace:
        path.append("namespaces/{:namespace}")
    path += [info.resource, "{:name}" if info.name else "", info.subresource]
    return f"{request.method} /{'/'.join(filter(None, path))}"


def asked(request: Request) -> SpanAttributes:
    """Return the attributes of an incoming request."""
    found: dict[str, Value] = {
        **_place(request.header(b"host")),
        "http.request.method": request.method,
        "url.scheme": request.scheme,
        "user_agent.original": request.header(b"user-agent"),
        "client.address": next(iter(source_ips(request)), ""),
        "url.path": request.path,
        "network.protocol.version": protocol_version(request),
        "http.target": asked_url(request),
        "audit-id": request.audit_id,
    }
    if request.client:
        found["network.peer.address"], found["network.peer.port"] = request.client
    if (length := request.header(b"content-length")).isdecimal():
        found["http.request.body.size"] = int(length)
    return {name: value for name, value in found.items() if value != ""}


def _place(authority: str) -> SpanAttributes:
    try:
        parts = urlsplit(f"//{authority}")
        port = {"server.port": parts.port} if parts.port else {}
        return {"server.address": parts.hostname, **port} if parts.hostname else {}
    except ValueError:
        return {}


def answered(span: Span, response: Response) -> Response:
    """End the span with the response: immediately, or after the last byte of a stream."""
    status_of(span, response.status)
    if isinstance(response.body, bytes):
        span.set({"http.response.body.size": len(response.body)})
        span.end()
    else:
        response.body = UntilEnd(response.body, span.end)
    return response


def status_of(span: Span, status: int, failed_from: int = _FAILED) -> None:
    span.set({"http.response.status_code": status})
    if status >= failed_from:
        span.fail("")


class Outgoing:
    """An outgoing request. Its headers propagate the trace, if any."""

    __slots__ = ("_span", "headers")

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self.headers: Headers = span.carried() if span is not None else []

    def answered(self, status: int) -> None:
        if self._span is not None:
            status_of(self._span, status, failed_from=400)


_UNTRACED = Outgoing(None)


def joined(headers: Headers, trace: Headers) -> Headers:
    """Return the headers of a forwarded request, with its trace headers replaced."""
    replaced = {name for name, _ in trace}
    return [*(field for field in headers if field[0] not in replaced), *trace] if trace else headers


@contextmanager
def outgoing(method: str, url: str) -> Iterator[Outgoing]:
    """Trace a request to another server; exceptions propagate."""
    around = CURRENT.get()
    if around is None or around.ended:
        yield _UNTRACED
        return
    place = _place(urlsplit(url).netloc)
    span = around.child(f"HTTP {method}", {"http.request.method": method, "url.full": url, **place}, kind=CLIENT)
    try:
        yield Outgoing(span)
    except BaseException as error:
        span.fail(str(error))
        raise
    finally:
        span.end()


@contextmanager
def outgoing_rpc(method: str, address: str) -> Iterator[list[tuple[str, str]] | None]:
    """Trace a gRPC call; yields the metadata that propagates the trace."""
    around = CURRENT.get()
    if around is None or around.ended:
        yield None
        return
    attributes = {"rpc.method": method, "rpc.system.name": "grpc", **_place(address)}
    span = around.child(method, attributes, kind=CLIENT)
    try:
        yield [(name.decode(), value.decode("latin-1")) for name, value in span.carried()]
        span.set({"rpc.response.status_code": "OK"})
    except BaseException as error:
        span.fail(str(error))
        raise
    finally:
        span.end()
