"""HTTPS fetches of issuer documents, without redirects and with a size limit."""

from __future__ import annotations

import asyncio
import ssl
from http.client import responses

from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed
from pilothouse.apiserver.outbound.targets import target_of
from pilothouse.apiserver.outbound.tls import verifying_context

_TIMEOUT = 30.0
_MAX_ANSWER = 1 << 20


class FetchFailed(Exception):
    """The request failed or returned an error status."""


async def fetch(url: str, tls: ssl.SSLContext, *, token: str = "", timeout: float = _TIMEOUT) -> bytes:
    """Fetch the URL; `token` is sent as bearer token. Raises FetchFailed."""
    try:
        async with asyncio.timeout(timeout):
            return await _fetch(url, tls, token)
    except TimeoutError:
        raise FetchFailed(f"Get {url}: {DEADLINE_EXCEEDED}") from None


async def _fetch(url: str, tls: ssl.SSLContext, token: str) -> bytes:
    # Deferred import of the HTTP client.

    from pilothouse.apiserver.outbound.request import AnswerTooLarge, OutboundRequest, ask

    headers = [(b"user-agent", b"pilothouse"), (b"accept", b"*/*")]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    try:
        answer = await ask(OutboundRequest("GET", target_of(url, tls=tls), headers), limit=_MAX_ANSWER)

    except (BackendFailed, AnswerTooLarge, ValueError) as error:
        raise FetchFailed(f"Get {url}: {error}") from None
    if answer.status != 200:
        raise FetchFailed(f"Get {url}: {answer.status} {responses.get(answer.status, '')}")
    return answer.body


def tls_context(authorities: str) -> ssl.SSLContext:
    """Build a TLS context that trusts the PEM bundle. Raises ValueError."""
    try:
        return verifying_context(authorities)
    except ssl.SSLError:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates") from None
