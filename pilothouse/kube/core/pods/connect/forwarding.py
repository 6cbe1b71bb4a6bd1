"""Plain HTTP requests to kubelets and pods, each on a new connection. Response bodies are streamed.

For logs and other downloads, an error response of the kubelet becomes an error of this server.
"""

from __future__ import annotations

from contextlib import suppress

from pilothouse.apiserver.http import Request, Response, Stream
from pilothouse.apiserver.outbound.exchange import Head
from pilothouse.apiserver.outbound.failures import UNREACHABLE_SERVICE, BackendFailed, get_problem
from pilothouse.apiserver.outbound.request import OutboundRequest, header, send
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.upgrades import CORS, HOP_BY_HOP, forwarded_for
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
_SMALL_PAGE = 256 * 1024  # responses up to this size get a Content-Length
_NOT_ANSWERED = HOP_BY_HOP | CORS | {b"content-length"}
_NOT_FORWARDED = HOP_BY_HOP | {b"content-length", b"authorization", b"x-forwarded-for"}
"""Headers that stay here. The client's credentials are for this server alone."""
MAX_MESSAGE = 50_000
"""Maximum bytes of a kubelet's error message in the response."""


@dataclass(frozen=True, slots=True)
class _Answering:
    head: Head
    body: Stream
    """Closing the stream closes the connection."""


async def forward(request: Request, target: Target, *, prefix: str) -> Response:
    """Forward the request. `prefix` is the client's path to the target. Raises ServiceUnavailable if the target is
    unreachable."""
    content = await request.read_body(MAX_BODY)
    uri = prefix + target.path
    passed = [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
    headers = [*passed, *forwarded_for(request), (b"x-forwarded-uri", uri.encode())]
    try:
        answering = await _answering(OutboundRequest(request.method, target, headers, content))
    except BackendFailed as error:
        raise ServiceUnavailable(f"{UNREACHABLE_SERVICE}{error}") from None
    links = Links(prefix, frozenset({target.authority, request.header(b"host")}) - {""})
    head, body = answering.head, answering.body
    headers = [(name, value) for name, value in head.headers if name not in _NOT_ANSWERED]
    if location := header(headers, b"location"):
        rewritten = links.rewritten(location).encode("latin-1")
        headers = [(name, rewritten if name == b"location" else value) for name, value in headers]
    elif header(headers, b"content-type").partition(";")[0].strip().lower() == "text/html":
        page = rewritten_page(body, header(headers, b"content-encoding"), links)
        return Response(head.status, await whole_or_stream(page, _SMALL_PAGE), headers)
    return Response(head.status, body, headers)


async def download(target: Target, resource: GroupResource, name: str) -> Stream:
    """Return the body of a GET of the target. An error response raises the matching error for `resource` and `name`."""
    try:
        answering = await _answering(OutboundRequest("GET", target))
    except BackendFailed as error:
        raise StatusError(get_problem(error, target)) from None
    if 200 <= answering.head.status <= 206:
        return answering.body
    message = bytearray()
    try:
        with suppress(BackendFailed):
            async for chunk in answering.body:
                message += chunk
                if len(message) >= MAX_MESSAGE:
                    break
    finally:
        await close_stream(answering.body)
    text = message[:MAX_MESSAGE].decode("utf-8", "replace")
    raise _refusal(answering.head.status, text, resource, name)


async def _answering(request: OutboundRequest) -> _Answering:
    """Send the request and read the head of the response. Raises BackendFailed."""
    exchange = await send(request)
    try:
        return _Answering(await exchange.head(), UntilEnd(exchange.body(), exchange.close))
    except BaseException:
        exchange.close()
        raise


def _refusal(status: int, text: str, resource: GroupResource, name: str) -> StatusError:
    """Convert a kubelet's error response to an error of this server."""
    if status == 500:
        return InternalError.of(text)
    if status == 400:
        return BadRequest(text)
    generic = generic_response(status, text)
    body = {
        "code": status,
        "reason": generic.reason,
        "message": f"{generic.message} ( {resource} {name})",
        "details": details_of(resource, name),
    }
    return from_status(body, http_code=status)
