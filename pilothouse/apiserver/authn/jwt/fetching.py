"""Fetches what issuers publish, over TLS. Redirects are not followed, and nobody makes the server read without end."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_TIMEOUT = 30.0
_MAX_ANSWER = 1 << 20


class FetchFailed(Exception):
    """Nobody answered, or not with success."""


async def fetch(url: str, tls: ssl.SSLContext, *, token: str = "", timeout: float = _TIMEOUT) -> bytes:
    """`token`: the bearer token to show. Raises FetchFailed."""
    import aiohttp

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with asyncio.timeout(timeout), aiohttp.ClientSession(headers=headers) as session:
            return await _exchange(session, url, tls)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise FetchFailed(f"Get {url}: {error or type(error).__name__}") from None


async def _exchange(session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext) -> bytes:
    async with session.get(url, ssl=tls, allow_redirects=False) as response:
        body = b""
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > _MAX_ANSWER:
                raise FetchFailed(f"Get {url}: the answer is too large")
        if response.status != 200:
            raise FetchFailed(f"Get {url}: {response.status} {response.reason}")
        return body


def tls_context(authorities: str) -> ssl.SSLContext:
    """Raises ValueError."""
    try:
        return ssl.create_default_context(cadata=authorities or None)
    except ssl.SSLError:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates") from None
