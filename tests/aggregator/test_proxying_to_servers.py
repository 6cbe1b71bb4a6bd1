"""Requests that another API server answers, through real sockets and TLS on both hops."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from patience import PATIENCE
from tls_backends import SERVER_NAME, FixedServices, Pki, api_service, backend

from pilothouse.aggregator.proxy.handler import ProxyConfig, ProxyHandler
from pilothouse.aggregator.proxy.headers import reencoded
from pilothouse.aggregator.proxy.transport import ProxyClientCertificate, Transports
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.filters.answer_headers import with_answer_headers
from pilothouse.apiserver.filters.request_info import with_request_info
from pilothouse.apiserver.filters.timeout import with_timeout
from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.upgrades import forward_upgrade
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.serving.client_certificate import client_certificate
from pilothouse.apiserver.serving.server import ListenEndpoint, Server
from pilothouse.apiserver.serving.upgrade import raw_connection
from pilothouse.machinery.status_error import StatusError

PATH = "/apis/example.com/v1/things"
USER = User("amy-é", uid="a-1", groups=("builders", "x"), extra={"acme.com/Pro%ject": ("one", "two")})


@dataclass
class Seen:
    """What the backend was asked, last."""

    requests: list[Request] = field(default_factory=list)
    answer: Handler | None = None

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return await self.answer(request) if self.answer else text(200, "hello")

    @property
    def headers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in self.requests[-1].headers:
            found.setdefault(name.decode(), []).append(value.decode())
        return found


class World:
    def __init__(self, seen: Seen, proxy: ProxyHandler, services: FixedServices, port: int) -> None:
        self.seen, self.proxy, self.services = seen, proxy, services
        self._base, self.client_port = f"http://127.0.0.1:{port}", port
        self.client = aiohttp.ClientSession(auto_decompress=False)

    def __call__(self, method: str, path: str = PATH, **more: Any) -> aiohttp.client._RequestContextManager:
        return self.client.request(method, self._base + path, allow_redirects=False, **more)

    async def get(self, path: str = PATH, **headers: str) -> tuple[int, str]:
        async with self("GET", path, headers=headers) as answer:
            return answer.status, await answer.text()


@dataclass
class Setting:
    pki: Pki
    proxies: Pki
    seen: Seen
    protocols: tuple[str, ...]

    @asynccontextmanager
    async def world(
        self, *, request_timeout: float = 60.0, names: tuple[str, ...] = (SERVER_NAME,), **spec: Any
    ) -> AsyncIterator[World]:
        spec = spec or {"caBundle": self.pki.ca_bundle}
        certificate = ProxyClientCertificate(self.proxies.client(), poll_seconds=0)
        async with backend(
            self.seen, self.pki, names=names, client_ca=self.proxies.ca_file, protocols=self.protocols
        ) as server:
            services = FixedServices(server.port)
            proxy = ProxyHandler(
                _nobody,
                ProxyConfig(services, Transports(certificate), True, ServerRunOptions(request_timeout=request_timeout)),
            )
            proxy.update(api_service(**spec))
            front = Server(_front(proxy, request_timeout), [ListenEndpoint("127.0.0.1", 0)])
            await front.start()
            world = World(self.seen, proxy, services, front.port)
            try:
                yield world
            finally:
                await world.client.close()
                await front.abort()
                proxy.close()


def _front(proxy: ProxyHandler, request_timeout: float) -> Handler:
    async def as_amy(request: Request) -> Response:
        request.user = USER
        return await proxy(request)

    return with_answer_headers()(with_request_info(with_timeout(request_timeout)(as_amy)))


async def _nobody(request: Request) -> Response:
    return text(404, "local")


@pytest.fixture(params=[("http/1.1",), ("h2", "http/1.1")], ids=["http1", "http2"])
def setting(tmp_path: Path, request: pytest.FixtureRequest) -> Setting:
    """With a server that offers HTTP/2, and with one that does not."""
    servers, proxies = Pki.make(tmp_path / "servers"), Pki.make(tmp_path / "proxies", "front-proxy-ca")
    return Setting(servers, proxies, Seen(), request.param)


async def test_the_server_is_told_who_asks_and_nothing_that_the_client_says_about_that(setting: Setting) -> None:
    async with setting.world() as world:
        status, body = await world.get(
            f"{PATH}/a%20b?limit=1&x=%26",
            **{"X-Remote-User": "root", "X-Remote-Extra-Evil": "y", "Authorization": "Bearer s", "Accept": "a/b"},
        )
    assert (status, body) == (200, "hello")
    headers = world.seen.headers
    request = world.seen.requests[-1]
    assert request.http_version == ("2" if "h2" in setting.protocols else "1.1")
    assert (request.path, request.query_string) == (f"{PATH}/a b", "limit=1&x=%26")
    assert headers["x-remote-user"] == ["amy-é"]
    assert headers["x-remote-uid"] == ["a-1"]
    assert headers["x-remote-group"] == ["builders", "x"]
    assert headers["x-remote-extra-acme.com%2fpro%25ject"] == ["one", "two"]
    assert not {"authorization", "x-remote-extra-evil"} & set(headers)
    assert headers["accept"] == ["a/b"]


async def test_the_server_learns_where_the_request_came_from(setting: Setting) -> None:
    async with setting.world() as world:
        async with world("GET", headers={"X-Forwarded-For": "192.0.2.9", "Connection": "keep-alive, x-hop"}) as answer:
            audit_id = answer.headers["Audit-Id"]
        headers = world.seen.headers
        place = f"127.0.0.1:{world.services.port}"
    assert headers["x-forwarded-for"] == ["192.0.2.9, 127.0.0.1"]
    assert headers["x-forwarded-uri"] == [PATH]
    assert (headers["x-forwarded-host"], headers["x-forwarded-proto"], headers["host"]) == ([place], ["https"], [place])
    assert headers["audit-id"] == [audit_id]


async def _common_name(request: Request) -> Response:
    shown = client_certificate(request.transport)
    return text(200, shown.common_name if shown else "nobody")


async def test_this_server_proves_that_it_is_the_front_proxy(setting: Setting) -> None:
    setting.seen.answer = _common_name
    async with setting.world() as world:
        assert await world.get() == (200, "front-proxy-client")


async def test_a_renewed_certificate_is_shown_at_once(setting: Setting) -> None:
    setting.seen.answer = _common_name
    async with setting.world() as world:
        assert await world.get() == (200, "front-proxy-client")
        new = setting.proxies.client("another", file="new")
        for old, made in (
            (setting.proxies.client().key_file, new.key_file),
            (setting.proxies.client().cert_file, new.cert_file),
        ):
            old.write_bytes(made.read_bytes())
        assert await world.get() == (200, "another")


async def test_a_server_that_the_bundle_does_not_vouch_for_is_not_asked(setting: Setting, tmp_path: Path) -> None:
    other = Pki.make(tmp_path / "others", "others")
    async with setting.world(caBundle=other.ca_bundle) as world:
        status, body = await world.get()
    assert status == 503
    assert body == (
        "error trying to reach service: tls: failed to verify certificate: "
        "x509: certificate signed by unknown authority\n"
    )
    assert setting.seen.requests == []


async def test_a_server_with_another_name_is_not_asked_unless_nobody_cares(setting: Setting) -> None:
    async with setting.world(names=("other.default.svc",)) as world:
        status, body = await world.get()
        assert (status, setting.seen.requests) == (503, [])
        assert "x509: certificate is valid for other.default.svc, not web.default.svc" in body
        world.proxy.update(api_service(insecureSkipTLSVerify=True))
        assert await world.get() == (200, "hello")


async def test_an_apiservice_that_is_not_available_is_not_asked(setting: Setting) -> None:
    async with setting.world() as world:
        world.proxy.update(api_service(available=False))
        assert await world.get() == (503, "service unavailable\n")
        world.proxy.update(api_service(caBundle=setting.pki.ca_bundle))
        world.services.port = None
        assert await world.get() == (503, "service unavailable\n")
        world.proxy.update(api_service(service=None))
        assert await world.get() == (404, "local")
    assert setting.seen.requests == []


async def test_a_server_that_is_gone_is_an_error_and_not_a_hang(setting: Setting) -> None:
    async with setting.world() as world:
        world.services.port = 1
        assert await world.get() == (
            503,
            "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused\n",
        )


async def test_redirects_are_refused(setting: Setting) -> None:
    async def elsewhere(request: Request) -> Response:
        return Response(302, headers=[(b"location", b"https://elsewhere.example.com/")])

    setting.seen.answer = elsewhere
    async with setting.world() as world, world("GET") as answer:
        assert answer.status == 502
        assert await answer.text() == "the backend attempted to redirect this request, which is not permitted"
        assert "Location" not in answer.headers


async def test_connections_are_kept_and_a_dead_one_costs_nothing(setting: Setting) -> None:
    ports: list[object] = []

    async def note(request: Request) -> Response:
        ports.append(request.client)
        return text(200, "x", connection="close" if len(ports) == 3 else "keep-alive")

    setting.seen.answer = note
    async with setting.world() as world:
        for _ in range(4):
            assert await world.get() == (200, "x")
    assert ports[0] == ports[1] == ports[2] != ports[3]


async def test_a_connection_that_breaks_before_the_answer_is_replaced_for_reads_only(setting: Setting) -> None:
    async def break_second(request: Request) -> Response:
        if len(setting.seen.requests) % 3 == 2:
            assert request.transport is not None
            request.transport.abort()
        return text(200, "x")

    setting.seen.answer = break_second
    async with setting.world() as world:
        assert await world.get() == (200, "x")
        assert await world.get() == (200, "x")  # breaks, and is made again
        assert len(setting.seen.requests) == 3
        assert await world.get() == (200, "x")
        async with world("POST", data=b"{}") as answer:
            assert (answer.status, await answer.text()) == (503, "error trying to reach service: EOF\n")
        assert len(setting.seen.requests) == 5


async def test_bodies_of_any_size_go_both_ways(setting: Setting) -> None:
    async def echo(request: Request) -> Response:
        assert request.stream_body is not None
        return Response(201, request.stream_body())

    setting.seen.answer = echo
    big = bytes(range(256)) * 20_000
    async with setting.world() as world:
        for body in (b"", b"small", big):
            async with world("POST", data=body) as answer:
                assert (answer.status, await answer.read() == body) == (201, True)

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(big), 100_000):
                yield big[at : at + 100_000]

        async with world("PUT", data=pieces()) as answer:
            assert hashlib.sha256(await answer.read()).digest() == hashlib.sha256(big).digest()


async def test_what_a_watch_sends_arrives_at_once_and_ends_when_the_client_goes(setting: Setting) -> None:
    said, ended = asyncio.Event(), asyncio.Event()

    async def events(request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            try:
                yield b"first\n"
                await said.wait()
                yield b"second\n"
                await asyncio.Event().wait()
            finally:
                ended.set()

        return Response(200, stream())

    setting.seen.answer = events
    async with setting.world() as world:
        async with world("GET", f"{PATH}?watch=true") as answer:
            assert await answer.content.readline() == b"first\n"
            said.set()
            assert await answer.content.readline() == b"second\n"
        await asyncio.wait_for(ended.wait(), PATIENCE)


async def test_a_watch_whose_client_goes_before_the_answer_ends_as_well(setting: Setting) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        asked.set()
        assert request.disconnected is not None
        await request.disconnected()
        left.set()
        return text(200, "")

    setting.seen.answer = wait
    async with setting.world() as world:
        asking = asyncio.create_task(world.get(f"{PATH}?watch=true"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        asking.cancel()
        await asyncio.wait_for(left.wait(), PATIENCE)


async def test_a_server_that_speaks_no_http_is_an_error(setting: Setting) -> None:
    async def babble(request: Request) -> Response:
        assert request.transport is not None
        request.transport.write(b"220 mail.example.com\r\n\r\n")
        return text(200, "")

    setting.seen.answer = babble
    async with setting.world() as world:
        status, body = await world.get()
    assert status == 503
    broken = (
        "http2: a frame is too large"
        if "h2" in setting.protocols
        else "net/http: HTTP/1.x transport connection broken: "
    )
    assert body.startswith(f"error trying to reach service: {broken}")


async def test_a_server_that_stops_in_the_middle_of_an_answer_shows(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    seen = asyncio.Event()

    async def half(request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            yield b"half"
            await seen.wait()
            assert request.transport is not None
            request.transport.abort()

        return Response(200, stream())

    setting.seen.answer = half
    async with setting.world() as world, world("GET") as answer:
        assert await answer.content.readexactly(4) == b"half"
        seen.set()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
    assert "Traceback" not in caplog.text


async def test_a_slow_reader_holds_the_server_back(setting: Setting) -> None:
    sent = 0

    async def endless(request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 1
                yield bytes(100_000)

        return Response(200, stream())

    setting.seen.answer = endless
    async with setting.world() as world, world("GET", f"{PATH}?watch=1") as answer:
        await answer.content.readexactly(1)
        before = -1
        while before != sent:
            before = sent
            for _ in range(50):
                await asyncio.sleep(0.002)
        assert sent * 100_000 < 40 << 20


async def test_an_answer_that_does_not_end_in_time_is_broken_off(setting: Setting) -> None:
    async def stall(request: Request) -> Response:
        async def stream() -> AsyncIterator[bytes]:
            yield b"half"
            await asyncio.Event().wait()

        return Response(200, stream())

    setting.seen.answer = stall
    async with setting.world(request_timeout=0.3) as world:
        with pytest.raises(aiohttp.ClientPayloadError):
            async with world("GET") as answer:
                await answer.read()


@pytest.mark.parametrize(
    ("asked", "passed_on"),
    [
        ("", ""),
        ("watch", "watch="),
        ("b=2&a=1&b=1", "a=1&b=2&b=1"),
        ("labelSelector=a%20in%20(b,c)", "labelSelector=a+in+%28b%2Cc%29"),
        ("a=~.-_*", "a=~.-_%2A"),
        ("a;b=1&c=%zz&d=%ff&&e=1+2", "d=%FF&e=1+2"),
    ],
)
def test_queries_are_written_anew_as_go_does(asked: str, passed_on: str) -> None:
    assert reencoded(asked) == passed_on


@pytest.mark.parametrize(
    ("bundle", "problem"),
    [
        (b"a", "unable to parse bytes as PEM block"),
        (
            b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n",
            "failed to parse certificate: x509: malformed certificate",
        ),
        (
            b"-----BEGIN RSA PRIVATE KEY-----\nYQ==\n-----END RSA PRIVATE KEY-----\n",
            "no valid certificate authority data seen",
        ),
    ],
)
async def test_a_bundle_without_authorities_is_named_as_go_does(setting: Setting, bundle: bytes, problem: str) -> None:
    async with setting.world(caBundle=base64.b64encode(bundle).decode()) as world:
        assert await world.get() == (500, f"unable to load root certificates: {problem}\n")


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
async def test_upgrades_become_raw_connections(setting: Setting, protocol: str) -> None:
    async def shout(request: Request) -> Response:
        async def take(transport: asyncio.Transport, received: bytes) -> None:
            raw = raw_connection(transport, received)
            while line := await raw.reader.readline():
                raw.writer.write(line.upper())

        wished = request.header(b"upgrade").encode()
        return Response(101, headers=[(b"upgrade", wished), (b"connection", b"Upgrade")], upgrade=take)

    setting.seen.answer = shout
    async with setting.world() as world:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.client_port)
        head = f"GET {PATH}/a/proxy HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
        writer.write(head.encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101 ")
        writer.write(b"hello\n")
        assert await reader.readline() == b"HELLO\n"
        assert world.seen.headers["x-remote-user"] == ["amy-é"]
        writer.close()


@pytest.mark.parametrize("wish", [{}, {"Connection": "Upgrade", "Upgrade": "websocket"}])
async def test_a_user_s_name_cannot_become_a_second_header(
    setting: Setting, wish: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No authenticator makes such a user; should one come about all the same, nothing is sent."""
    monkeypatch.setitem(globals(), "USER", User("bob\r\nX-Remote-Group: system:masters"))
    async with setting.world() as world:
        async with world("GET", headers=wish) as answer:
            assert answer.status == 503
            assert 'net/http: invalid header field value for "X-Remote-User"' in await answer.text()
        assert world.seen.requests == []


async def test_an_upgrade_that_nobody_takes_is_an_error(setting: Setting) -> None:
    async with setting.world() as world:
        world.services.port = 1
        async with world("GET", headers={"Connection": "Upgrade", "Upgrade": "websocket"}) as answer:
            assert answer.status == 503
            assert await answer.text() == "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused\n"


async def test_a_refused_upgrade_leaves_no_way_to_the_other_server(setting: Setting) -> None:
    """CVE-2018-1002105: further requests over the connection went to the other server, as the front proxy."""

    async def refuse(request: Request) -> Response:
        return text(403, "no")

    setting.seen.answer = refuse
    async with setting.world() as world:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.client_port)
        wish = f"GET {PATH}/a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        hidden = f"GET {PATH}/b HTTP/1.1\r\nHost: x\r\nX-Remote-User: root\r\nConnection: close\r\n\r\n"
        writer.write((wish + hidden).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
        await reader.read()
        writer.close()
        sent = [value for request in world.seen.requests for name, value in request.headers if name == b"x-remote-user"]
    assert set(sent) == {"amy-é".encode()}


async def test_an_upgrade_that_is_not_answered_is_an_error(setting: Setting) -> None:
    async def ignore(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    wish = [(b"host", b"x"), (b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    upgrade = Request("GET", PATH, "", wish, _no_body)
    setting.seen.answer = ignore
    async with setting.world() as world:
        assert world.services.port is not None
        tls = ssl.create_default_context(cafile=str(setting.pki.ca_file))
        target = Target("127.0.0.1", world.services.port, PATH, tls=tls, server_name=SERVER_NAME, timeout=0.5)
        with pytest.raises(StatusError, match="error sending request: timeout awaiting response headers"):
            await forward_upgrade(upgrade, target)


async def _no_body(limit: int) -> bytes:
    return b""
