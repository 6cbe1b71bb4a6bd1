"""A request that is over is freed at once, by counting references: nothing waits for the garbage collector.

What a request holds can be large. Between two runs of the collector a server would keep all that came and went.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from serving_harness import Http1Client, Http2Client, client_context, port_and_context, secure_options, serving
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.apiserver.audit.policy import AuditPolicy
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.filters.audit import Auditing
from pilothouse.apiserver.filters.chain import ChainConfig, handler_chain
from pilothouse.apiserver.http import Handler, Request, Response, StreamBroken
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.serving.upgrade import raw_connection
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json

ALPN = ("http/1.1", "h2")
TOKEN = "known"
AUDIT = {"rules": [{"level": "RequestResponse"}]}
"""Holds on to requests if anything does."""


@pytest.fixture(autouse=True)
def without_the_collector() -> Iterator[None]:
    """What was there before is set aside. Errors that are logged would be kept by pytest, with their tracebacks."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()
    logging.disable(logging.NOTSET)


def requests() -> list[Request]:
    """Those that this test has made, and that are still there."""
    return [found for found in gc.get_objects() if type(found) is Request]


async def all_are_freed() -> None:
    """A few turns of the loop may be left of a request when its client has the answer."""
    deadline = time.monotonic() + PATIENCE
    while left := requests():
        assert time.monotonic() < deadline, f"{len(left)} requests are left"
        del left
        await asyncio.sleep(0.001)


class Client:
    """Asks in either protocol, on one connection that stays open."""

    def __init__(self, http1: Http1Client | None, http2: Http2Client | None, token: str) -> None:
        self._http1, self._http2 = http1, http2
        self._authorization = f"Bearer {token}"

    @classmethod
    async def connect(cls, pki: CertificatePaths, port: int, alpn: str) -> Client:
        return await cls.connect_to(port, client_context(pki, alpn=alpn), alpn, TOKEN)

    @classmethod
    async def connect_to(cls, port: int, context: ssl.SSLContext, alpn: str, token: str) -> Client:
        if alpn == "h2":
            return cls(None, await Http2Client.connect(port, context), token)
        return cls(await Http1Client.connect(port, context), None, token)

    async def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> int:
        """The status; the answer is read to its end."""
        if self._http1 is not None:
            self._http1.ask(path, method, f"Authorization: {self._authorization}\r\n", body or b"")
            return (await self._http1.answer()).status
        assert self._http2 is not None
        stream = self._http2.ask(path, method, body=body, headers=[("authorization", self._authorization)])
        return (await self._http2.answer(stream)).status

    async def begin(self, path: str) -> None:
        """Asks and reads the head of the answer."""
        if self._http1 is not None:
            self._http1.ask(path, headers=f"Authorization: {self._authorization}\r\n")
            await self._http1.head()
        else:
            assert self._http2 is not None
            log = self._http2.streams[self._http2.ask(path, headers=[("authorization", self._authorization)])]
            await self._http2.until(lambda: log.headers)

    def close(self) -> None:
        for client in (self._http1, self._http2):
            if client is not None:
                client.close()


async def answers(request: Request) -> Response:
    kind = request.path.strip("/")
    if kind == "body":
        return Response(200, await request.read_body(1 << 20))
    if kind == "streamed-body" and request.stream_body is not None:
        return Response(200, request.stream_body())
    if kind == "refused":
        raise BadRequest("no")
    if kind == "panic":
        raise ValueError(kind)
    if kind in ("stream", "endless", "broken"):
        return Response(200, _stream(kind))
    large = 20_000 if request.http_version == "2" else 200_000  # than is written at once, but not than a window
    return Response(200, bytes(2048 if kind == "whole" else large))


async def _stream(kind: str) -> AsyncIterator[bytes]:
    yield b"first"
    if kind == "broken":
        raise StreamBroken
    if kind == "endless":
        await asyncio.Event().wait()
    yield b"second"


@pytest.mark.parametrize("alpn", ALPN)
@pytest.mark.parametrize("kind", ["whole", "large", "stream", "body", "streamed-body", "panic", "refused"])
async def test_an_answered_request_is_freed(pki: CertificatePaths, alpn: str, kind: str) -> None:
    async with serving(answers, secure_options(pki)) as server:
        client = await Client.connect(pki, server.port, alpn)
        sends = "body" in kind
        for _ in range(3):
            status = await client.ask(f"/{kind}", "POST" if sends else "GET", b"x" * 100 if sends else None)
            assert status == (500 if kind in ("panic", "refused") else 200)
        await all_are_freed()
        client.close()


@pytest.mark.parametrize("alpn", ALPN)
@pytest.mark.parametrize("kind", ["endless", "broken"])
async def test_a_stream_that_is_cut_off_is_freed(pki: CertificatePaths, alpn: str, kind: str) -> None:
    async with serving(answers, secure_options(pki)) as server:
        client = await Client.connect(pki, server.port, alpn)
        await client.begin(f"/{kind}")
        client.close()
        await all_are_freed()


async def test_a_connection_that_was_taken_over_is_freed(pki: CertificatePaths) -> None:
    async def echo(transport: asyncio.Transport, received: bytes) -> None:
        raw = raw_connection(transport, received)
        raw.writer.write(await raw.reader.readexactly(5))

    async def upgraded(request: Request) -> Response:
        return Response(101, headers=[(b"connection", b"Upgrade"), (b"upgrade", b"echo")], upgrade=echo)

    async with serving(upgraded, secure_options(pki)) as server:
        client = await Http1Client.connect(server.port, client_context(pki, alpn="http/1.1"))
        client.ask("/", headers="Connection: Upgrade\r\nUpgrade: echo\r\n")
        await client.head()
        client.send(b"hello")
        assert await client.end() == b"hello"
        client.close()
        await all_are_freed()


@pytest.mark.parametrize("alpn", ALPN)
async def test_requests_to_a_whole_server_are_freed(alpn: str, tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **AUDIT}))
    async with whole_server(audit_policy_file=policy, audit_log_path=log) as api:
        await create_config_map(api, "one", data={"a": "b" * 10_000})
        client = await Client.connect_to(*port_and_context(api, alpn=alpn), alpn, api.token)
        for path, status in {
            f"{CONFIG_MAPS}/one": 200,
            f"{CONFIG_MAPS}/none": 404,
            CONFIG_MAPS: 200,
            f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1": 200,
            f"{CONFIG_MAPS}?labelSelector=a=b=c": 400,
            f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1": 200,
        }.items():
            assert await client.ask(path) == status
            await all_are_freed()
        await client.begin(f"{CONFIG_MAPS}?watch=1")
        client.close()
        await all_are_freed()


@pytest.mark.parametrize("alpn", ALPN)
async def test_a_request_that_took_too_long_is_freed(pki: CertificatePaths, alpn: str) -> None:
    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(_chain(never, request_timeout=0.05), secure_options(pki)) as server:
        client = await Client.connect(pki, server.port, alpn)
        assert await client.ask("/apis") == 504
        await all_are_freed()
        client.close()


def _chain(api: Handler, request_timeout: float = 60.0) -> Handler:
    """With everything that may hold on to a request, such as auditing."""
    users = BearerAuthenticator(StaticTokens({TOKEN: User("tester", groups=(SYSTEM_PRIVILEGED_GROUP,))}))
    auditing = Auditing(AuditPolicy(AUDIT), Nowhere())
    config = ChainConfig(
        users, AlwaysAllow(), run_options=ServerRunOptions(request_timeout=request_timeout), auditing=auditing
    )
    return handler_chain(api, config)


class Nowhere:
    async def process(self, event: Json) -> bool:
        return True


async def _no_body(limit: int) -> bytes:
    return b""


async def test_the_collector_would_find_what_is_not_freed() -> None:
    """So that the tests above can fail."""
    held = Request("GET", "/", "", [], _no_body)
    warnings: list[Any] = held.warnings
    warnings.append(held)
    del warnings
    del held
    assert len(requests()) == 1
    gc.collect()
    assert not requests()
