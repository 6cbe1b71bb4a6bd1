"""Ordinary requests to kubelets and pods: answers are passed on as they come."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.proxy.headers import CORS, HOP_BY_HOP, forwarded_for
from pilothouse.apiserver.proxy.targets import Target, dial_problem, get_problem
from pilothouse.apiserver.streams import whole_or_stream
from pilothouse.kube.core.pods.connect.links import Links
from pilothouse.kube.core.pods.connect.pages import rewritten_page
from pilothouse.kube.core.pods.connect.refusals import MAX_MESSAGE, refusal
from pilothouse.machinery.errors import ServiceUnavailable, StatusError
from pilothouse.machinery.names import GroupResource

MAX_BODY = 64 * 1024 * 1024
_SMALL_PAGE = 256 * 1024  # whose length the client is told
_NOT_ANSWERED = HOP_BY_HOP | CORS | {b"content-length"}
_NOT_FORWARDED = HOP_BY_HOP | {b"content-length", b"authorization", b"x-forwarded-for"}
"""The client's credentials are for this server."""


async def forward(request: Request, target: Target, *, prefix: str) -> Response:
    """`prefix` is the path at which the client sees the target. Raises ServiceUnavailable when nothing answers."""
    body = await request.read_body(MAX_BODY)
    session = _new_session(target)
    try:
        answer = await session.request(
            request.method,
            URL(target.url, encoded=True),
            headers=_forwarded(request, prefix + target.path),
            data=body or None,
            allow_redirects=False,
        )
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        await session.close()
        problem = dial_problem(_cause_of(error), target)
        raise ServiceUnavailable(f"error trying to reach service: {problem}") from None
    hosts = frozenset({target.authority, request.header(b"host")}) - {""}
    return await _answered(session, answer, Links(prefix, hosts))


def _new_session(target: Target) -> aiohttp.ClientSession:
    """One connection for one request, whose body is passed on just as it is."""
    resolver = _Found(target.address) if target.address else None
    connector = aiohttp.TCPConnector(ssl=target.tls or False, force_close=True, resolver=resolver)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=target.timeout)
    skipped = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
    return aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=skipped)


class _Found(AbstractResolver):
    """Finds everything at one address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        kind = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        return [
            ResolveResult(
                hostname=host, host=self._address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """There is nothing to close."""


async def download(target: Target, resource: GroupResource, name: str) -> AsyncIterator[bytes]:
    """What a GET of the target gives. Raises the error of `resource` and `name` that any other answer stands for."""
    session = _new_session(target)
    try:
        answer = await session.get(URL(target.url, encoded=True), allow_redirects=False)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        await session.close()
        raise StatusError(get_problem(_cause_of(error), target)) from None
    if 200 <= answer.status <= 206:
        return _stream(session, answer)
    async with session:
        text = (await answer.content.read(MAX_MESSAGE)).decode("utf-8", "replace")
    raise refusal(answer.status, text, resource, name)


async def _stream(session: aiohttp.ClientSession, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of an answer; ends the session with it."""
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()
        await session.close()


def _cause_of(error: BaseException) -> BaseException:
    """The error of the operating system or of TLS that aiohttp wraps."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    wrapped = getattr(error, "os_error", None)
    return wrapped if isinstance(wrapped, BaseException) else error


def _forwarded(request: Request, uri: str) -> list[tuple[str, str]]:
    kept = [(name, value) for name, value in request.headers if name not in _NOT_FORWARDED]
    kept += forwarded_for(request)
    kept.append((b"x-forwarded-uri", uri.encode()))
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in kept]


async def _answered(session: aiohttp.ClientSession, answer: aiohttp.ClientResponse, links: Links) -> Response:
    raw = ((name.lower(), value) for name, value in answer.raw_headers)
    headers = [(name, value) for name, value in raw if name not in _NOT_ANSWERED]
    if "location" in answer.headers:
        place = links.rewritten(answer.headers["location"]).encode("latin-1")
        headers = [(name, place if name == b"location" else value) for name, value in headers]
    elif answer.content_type == "text/html":
        page = rewritten_page(_stream(session, answer), answer.headers.get("content-encoding", ""), links)
        return Response(answer.status, await whole_or_stream(page, _SMALL_PAGE), headers)
    return Response(answer.status, _stream(session, answer), headers)
