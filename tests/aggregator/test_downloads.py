"""Downloads from other servers: bounded in time and size, over real TLS, whatever the other side does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tls_backends import FixedServices, Pki, api_service, backend

from pilothouse.aggregator import download
from pilothouse.aggregator.download import Download, DownloadFailed
from pilothouse.aggregator.proxy.handler import ProxyConfig, ProxyHandler
from pilothouse.aggregator.proxy.transport import Transports
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.machinery.errors import Forbidden

USER = User("system:aggregator")
LIMIT = 100_000


async def _serve(request: Request) -> Response:
    match request.path:
        case "/hangs":
            await asyncio.Event().wait()
        case "/stops":
            return Response(200, _chunks(1, then_hang=True))
        case "/endless":
            return Response(200, _chunks(1_000_000))
        case "/streamed":
            return Response(200, _chunks(3), [(b"etag", b'"1"'), (b"content-type", b"application/json")])
    return Response(404, b"no\n")


async def _chunks(count: int, *, then_hang: bool = False) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 1000
    if then_hang:
        await asyncio.Event().wait()


@pytest.fixture
async def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Handler]:
    monkeypatch.setattr(download, "LIMIT", LIMIT)
    pki = Pki.make(tmp_path)
    async with backend(_serve, pki) as server:
        config = ProxyConfig(FixedServices(server.port), Transports())
        proxy = ProxyHandler(_serve, config)
        proxy.update(api_service(caBundle=pki.ca_bundle))
        yield proxy
        config.transports.close()


async def test_an_answer_is_read_whole(remote: Handler) -> None:
    answer = await Download("/streamed", USER).get(remote)
    assert (answer.status, len(answer.body), answer.etag, answer.content_type) == (200, 3000, '"1"', "application/json")
    assert (await Download("/nowhere", USER).get(remote)).status == 404


@pytest.mark.parametrize("path", ["/hangs", "/stops"])
async def test_a_server_that_hangs_before_or_in_its_answer_is_given_up(remote: Handler, path: str) -> None:
    with pytest.raises(DownloadFailed, match="no answer within"):
        await Download(path, USER, timeout=0.1).get(remote)


async def test_an_answer_without_end_is_given_up_at_the_limit(remote: Handler) -> None:
    with pytest.raises(DownloadFailed, match="longer than"):
        await Download("/endless", USER).get(remote)


async def test_a_refusal_is_an_answer_and_a_crash_is_a_failure() -> None:
    async def refuses(request: Request) -> Response:
        raise Forbidden("no")

    async def crashes(request: Request) -> Response:
        raise RuntimeError

    assert (await Download("/apis", USER).get(refuses)).status == 403
    with pytest.raises(DownloadFailed, match="RuntimeError"):
        await Download("/apis", USER).get(crashes)
