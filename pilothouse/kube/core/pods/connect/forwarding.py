"""Ordinary requests to kubelets and pods, each on a connection of its own: answers are passed on as they come.

A refusal of a kubelet becomes an error of this server where a log or the like was asked for.
"""

from __future__ import annotations

from contextlib import suppress

from pilothouse.apiserver.http import Headers, Request, Response, Stream
from pilothouse.apiserver.outbound.exchange import Head
from pilothouse.apiserver.outbound.failures import UNREACHABLE_SERVICE, BackendFailed, get_problem
from pilothouse.apiserver.outbound.request import OutboundRequest, header, send
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.headers import CORS, HOP_BY_HOP, forwarded_for
from pilothouse.apiserver.streams import UntilEnd, close_stream, whole_or_stream
from pilothouse.kube.core.pods.connect.html_links import Links
from pilothouse.kube.core.pods.connect.pages import rewritten_page
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.server_errors import InternalError, ServiceUnavailable, generic_response
from pilothouse.machinery.status_error import StatusError, details_of

MAX_BODY = 64 * 1024 * 1024
_SMALL_PAGE = 256 * 1024  # whose length the client is told
_NOT_ANSWERED = HOP_BY_HOP | CORS | {b"content-length"}
_NOT_FORWARDED = HOP_BY_HOP | {b"content-length", b"authorization", b"x-forwarded-for"}
"""The client's credentials are for this server."""
MAX_MESSAGE = 50_000
"""Bytes of a kubelet's refusal that are passed on."""


@dataclass(frozen=True, slots=True)
class _Answering:
    head: Head
    body: Stream
    """Closing it ends the connection."""


async def forward(request: Request, target: Target, *, prefix: str) -> Response:
    """`prefix` is the path at which the client sees the target. Raises ServiceUnavailable when nothing answers."""
    body = await request.read_body(MAX_BODY)
    headers = _forwarded(request, prefix + target.path)
    try:
        answering = await _answering(OutboundRequest(request.method, target, headers, body))
    except BackendFailed as error:
        raise ServiceUnavailable(f"{UNREACHABLE_SERVICE}{error}") from None
    hosts = frozenset({target.authority, request.header(b"host")}) - {""}
    return await _answered(answering, Links(prefix, hosts))


async def download(target: Target, resource: GroupResource, name: str) -> Stream:
    """Return the body of a GET of the target. Raises the error of `resource` and `name` that a refusal means."""
    try:
        answering = await _answering(OutboundRequest("GET", target))
    except BackendFailed as error:
        raise StatusError(get_problem(error, target)) from None
    if 200 <= answering.head.status <= 206:
        return answering.body
    text = (await _beginning(answering.body)).decode("utf-8", "replace")
    raise _refusal(answering.head.status, text, resource, name)


async def _answering(request: OutboundRequest) -> _Answering:
    """Raises BackendFailed."""
    exchange = await send(request)
    try:
        return _Answering(await exchange.head(), UntilEnd(exchange.body(), exchange.close))
    except BaseException:
        exchange.close()
        raise


async def _beginning(body: Stream) -> bytes:
    """Return the first MAX_MESSAGE bytes of the body, and close it."""
    taken = bytearray()
    try:
        with suppress(BackendFailed):
            async for chunk in body:
                taken += chunk
                if len(taken) >= MAX_MESSAGE:
                    break
    finally:
        await close_stream(body)
    return bytes(taken[:MAX_MESSAGE])


def _forwarded(request: Request, uri: str) -> Headers:
    kept = [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
    return [*kept, *forwarded_for(request), (b"x-forwarded-uri", uri.encode())]


async def _answered(answering: _Answering, links: Links) -> Response:
    head, body = answering.head, answering.body
    headers = [(name, value) for name, value in head.headers if name not in _NOT_ANSWERED]
    if place := header(headers, b"location"):
        rewritten = links.rewritten(place).encode("latin-1")
        headers = [(name, rewritten if name == b"location" else value) for name, value in headers]
    elif _is_page(headers):
        page = rewritten_page(body, header(headers, b"content-encoding"), links)
        return Response(head.status, await whole_or_stream(page, _SMALL_PAGE), headers)
    return Response(head.status, body, headers)


def _is_page(headers: Headers) -> bool:
    return header(headers, b"content-type").partition(";")[0].strip().lower() == "text/html"


def _refusal(status: int, text: str, resource: GroupResource, name: str) -> StatusError:
    """A kubelet's answer that is no success, as an error of this server."""
    if status == 500:
        return InternalError.of(text)
    if status == 400:
        return BadRequest(text)
    meant = generic_response(status, text)
    found = {
        "code": status,
        "reason": meant.reason,
        "message": f"{meant.message} ( {resource} {name})",
        "details": details_of(resource, name),
    }
    return from_status(found, http_code=status)
