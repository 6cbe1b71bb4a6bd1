"""Webhooks are called over real TLS sockets; what fails is said in client-go's words."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from certificates_fixture import TestCA
from patience import PATIENCE
from webhook_server import FixedResolver, WebhookServer, webhook_server

from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.apiserver.webhook.endpoint import WebhookCallFailed, endpoint_of

REVIEW = {"apiVersion": "v1", "kind": "Review", "request": {"uid": "u"}}


async def echo(request: web.Request) -> web.StreamResponse:
    return web.json_response({"apiVersion": "v1", "kind": "Review", "response": await request.json()})


@pytest.fixture
async def hook() -> AsyncIterator[WebhookServer]:
    async with webhook_server(echo, "hook.default.svc") as server:
        yield server


@pytest.fixture
def resolver() -> FixedResolver:
    return FixedResolver()


@pytest.fixture
async def clients(resolver: FixedResolver) -> AsyncIterator[WebhookClients]:
    made = WebhookClients(resolver)
    yield made
    await made.close()


async def problem(clients: WebhookClients, config: dict[str, Any], *, timeout: float = 10) -> WebhookCallFailed:
    with pytest.raises(WebhookCallFailed) as found:
        await clients.post(config, REVIEW, timeout=timeout)
    return found.value


@pytest.mark.parametrize(
    ("config", "protocols"),
    [
        ({"url": "https://localhost:8443/x"}, ["h2", "http/1.1"]),
        ({"url": "https://127.0.0.9"}, ["h2", "http/1.1"]),
        ({"url": "https://[::1]:1"}, ["h2", "http/1.1"]),
        ({"url": "https://hook.example.com"}, ["http/1.1"]),
        ({"service": {"namespace": "default", "name": "localhost"}}, ["http/1.1"]),
    ],
)
def test_only_webhooks_on_this_machine_are_offered_http2(config: dict[str, Any], protocols: list[str]) -> None:
    assert endpoint_of(config).protocols == protocols


async def test_a_review_reaches_a_webhook_by_url_and_its_answer_comes_back(
    clients: WebhookClients, hook: WebhookServer
) -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return await echo(request)

    hook.answer = answer
    found = await clients.post(hook.by_url("/a/b/"), REVIEW, timeout=7.5)
    assert found["response"] == REVIEW
    assert seen[0].raw_path == "/a/b?timeout=8s"
    assert seen[0].headers["content-type"] == "application/json"


async def test_a_service_is_resolved_and_its_certificate_must_have_its_name(
    clients: WebhookClients, hook: WebhookServer, resolver: FixedResolver
) -> None:
    resolver.add("hook", hook.port)
    resolver.add("other", hook.port)
    assert (await clients.post(hook.by_service(), REVIEW, timeout=PATIENCE))["response"] == REVIEW
    failed = await problem(clients, hook.by_service("other"))
    assert str(failed) == (
        'Post "https://other.default.svc:443/convert?timeout=10s": tls: failed to verify certificate: '
        "x509: certificate is valid for hook.default.svc, not other.default.svc"
    )


async def test_a_service_that_there_is_not_is_named(clients: WebhookClients, hook: WebhookServer) -> None:
    failed = await problem(clients, hook.by_service("gone"))
    assert str(failed) == 'Post "https://gone.default.svc:443/convert?timeout=10s": service "gone" not found'


async def test_a_refused_connection_names_the_address_that_was_dialled(
    clients: WebhookClients, hook: WebhookServer, resolver: FixedResolver
) -> None:
    resolver.add("hook", 1)
    failed = await problem(clients, hook.by_service(path=""))
    assert str(failed) == (
        'Post "https://hook.default.svc:443/?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    )
    failed = await problem(clients, {"url": "https://127.0.0.1:1/x"})
    assert str(failed) == 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'


async def test_a_host_that_nobody_knows_is_named(clients: WebhookClients) -> None:
    failed = await problem(clients, {"url": "https://nobody.invalid/x"})
    assert str(failed) == ('Post "https://nobody.invalid/x?timeout=10s": dial tcp: lookup nobody.invalid: no such host')


@pytest.mark.parametrize("bundle", [base64.b64encode(TestCA().certificate).decode(), "", "IAo="])
async def test_a_certificate_of_another_authority_is_not_trusted(
    clients: WebhookClients, hook: WebhookServer, bundle: str
) -> None:
    failed = await problem(clients, hook.by_url() | {"caBundle": bundle})
    assert str(failed).endswith(": tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert hook.calls == 0


async def test_an_endpoint_without_tls_is_recognised(clients: WebhookClients) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        failed = await problem(clients, {"url": f"https://127.0.0.1:{port}/x"})
    assert str(failed).endswith(": http: server gave HTTP response to HTTPS client")


async def test_a_slow_webhook_is_left_at_the_deadline(clients: WebhookClients, hook: WebhookServer) -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    hook.answer = never
    failed = await problem(clients, hook.by_url("/slow"), timeout=0.1)
    assert str(failed) == f'Post "https://127.0.0.1:{hook.port}/slow?timeout=1s": context deadline exceeded'


async def test_connections_are_kept_and_a_lost_one_is_replaced(clients: WebhookClients, hook: WebhookServer) -> None:
    for _ in range(3):
        await clients.post(hook.by_url(), REVIEW, timeout=PATIENCE)
    assert len(hook.peers) == 1

    async def hang_up_once(request: web.Request) -> web.StreamResponse:
        hook.answer = echo
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    hook.answer = hang_up_once
    assert (await clients.post(hook.by_url(), REVIEW, timeout=PATIENCE))["response"] == REVIEW
    assert len(hook.peers) == 2


async def test_a_new_connection_that_is_hung_up_on_is_not_tried_again(
    clients: WebhookClients, hook: WebhookServer
) -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    hook.answer = hang_up
    failed = await problem(clients, hook.by_url())
    assert str(failed).endswith(('?timeout=10s": EOF', '?timeout=10s": read: connection reset by peer'))
    assert hook.calls == 1


@pytest.mark.parametrize(
    ("code", "body", "text"),
    [
        (404, "no", "the server could not find the requested resource"),
        (400, "no", "the server rejected our request for an unknown reason"),
        (403, " keep out\n", "keep out"),
        (302, "", "the server responded with the status code 302 but did not return more information"),
        (500, 'it "broke"', 'an error on the server ("it \\"broke\\"") has prevented the request from succeeding'),
        (503, "", "the server is currently unable to handle the request"),
        (429, "", "the server has received too many requests and has asked us to try again later"),
        (500, '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"own words"}', "own words"),
    ],
)
async def test_an_answer_that_is_no_success_is_told_in_the_words_for_its_code(
    clients: WebhookClients, hook: WebhookServer, code: int, body: str, text: str
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body, headers={"location": "/elsewhere"})

    hook.answer = answer
    failed = await problem(clients, hook.by_url())
    assert str(failed) == text
    assert failed.status is not None
    assert failed.status.code == code
    assert hook.calls == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(
    clients: WebhookClients, hook: WebhookServer, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A webhook cannot make the server ask others in its network, and show their answers: CVE-2020-8561."""
    asked: list[str] = []

    async def private(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response({"apiVersion": "v1", "kind": "Review", "response": {"private": "words"}})

    async with webhook_server(private, "private.default.svc") as other:

        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(status=code, text="moved words", headers={"location": other.by_url()["url"]})

        hook.answer = answer
        with caplog.at_level(logging.DEBUG, logger="pilothouse"):
            failed = await problem(clients, hook.by_url())
    assert (failed.status is not None and failed.status.code) == code
    assert asked == []
    assert "words" not in f"{failed}{caplog.text}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "0-length response with status code: 200 and content type: application/json"),
        (
            b"<html>",
            "couldn't get version/kind; json parse error: invalid character '<' looking for beginning of value",
        ),
        (b'{"kind":"Status","status":"Failure","message":"sorry"}', "sorry"),
    ],
)
async def test_an_answer_that_is_no_review_is_refused(
    clients: WebhookClients, hook: WebhookServer, body: bytes, text: str
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    hook.answer = answer
    assert str(await problem(clients, hook.by_url())) == text


async def test_a_webhook_that_asks_for_patience_is_asked_again(clients: WebhookClients, hook: WebhookServer) -> None:
    async def busy(request: web.Request) -> web.StreamResponse:
        hook.answer = echo
        return web.Response(status=429, headers={"retry-after": "0"})

    hook.answer = busy
    assert (await clients.post(hook.by_url(), REVIEW, timeout=PATIENCE))["response"] == REVIEW
    assert hook.calls == 2


async def test_an_answer_that_is_too_large_is_cut_off(hook: WebhookServer, resolver: FixedResolver) -> None:
    async def large(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b" " * (2 << 20))

    hook.answer = large
    clients = WebhookClients(resolver, max_answer=1 << 20)
    assert str(await problem(clients, hook.by_url())) == "the answer is larger than 1048576 bytes"
    await clients.close()


async def test_an_answer_may_come_compressed_but_not_to_burst(hook: WebhookServer, resolver: FixedResolver) -> None:
    async def compressed(request: web.Request) -> web.StreamResponse:
        assert request.headers["accept-encoding"] == "gzip"
        return web.Response(body=gzip.compress(body), headers={"content-encoding": "gzip"})

    hook.answer = compressed
    clients = WebhookClients(resolver, max_answer=1 << 20)
    body = b'{"apiVersion":"v1","kind":"Review","response":{}}'
    assert (await clients.post(hook.by_url(), REVIEW, timeout=PATIENCE))["kind"] == "Review"
    body = b" " * (2 << 20)
    assert str(await problem(clients, hook.by_url())) == "the answer is larger than 1048576 bytes"
    await clients.close()


async def test_connections_to_too_many_endpoints_are_closed_but_not_those_in_use(
    clients: WebhookClients, hook: WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.apiserver.webhook.client._MAX_ENDPOINTS", 2)
    together = asyncio.Barrier(5)

    async def all_at_once(request: web.Request) -> web.StreamResponse:
        await together.wait()
        return await echo(request)

    hook.answer = all_at_once
    paths = [f"/{number}" for number in range(5)]
    answers = await asyncio.gather(*(clients.post(hook.by_url(path), REVIEW, timeout=PATIENCE) for path in paths))
    assert [answer["response"] for answer in answers] == [REVIEW] * 5
    hook.answer = echo
    for path in ("/4", "/0"):
        await clients.post(hook.by_url(path), REVIEW, timeout=PATIENCE)
    assert len(clients._pools) < 5


async def test_a_configuration_that_points_nowhere_is_refused(clients: WebhookClients) -> None:
    assert str(await problem(clients, {})) == "webhook configuration must have either service or URL"
    assert "only allowed URL scheme" in str(await problem(clients, {"url": "http://127.0.0.1/x"}))
    garbage = {"url": "https://127.0.0.1/x", "caBundle": base64.b64encode(b"junk").decode()}
    assert str(await problem(clients, garbage)).startswith("unable to load root certificates")
