"""What other pages, other names and other users get of a console: nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from patience import PATIENCE

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.server import ListenEndpoint, Server
from pilothouse.client.config.model import ClientConfig, ImpersonationConfig
from pilothouse.console.metrics import figures
from pilothouse.console.page import BUILT, Page
from pilothouse.console.server import Console


class Cluster:
    """Answers with the headers it was asked with, and some that a browser would act on."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[bytes, bytes], bytes]] = []
        self.watch_ended = asyncio.Event()
        self.groups: list[bytes] = []

    async def __call__(self, request: Request) -> Response:
        body = await request.read_body(1 << 20)
        self.asked.append((request.method, request.path, dict(request.headers), body))
        self.groups = [value for name, value in request.headers if name == b"impersonate-group"]
        if request.path == "/api/v1/watched":
            return Response(200, self._events(request), [(b"content-type", b"application/json")])
        if request.header(b"upgrade"):
            return Response(101, headers=[(b"upgrade", b"websocket"), (b"connection", b"Upgrade")], upgrade=_echo)
        hostile = [(b"set-cookie", b"a=b"), (b"access-control-allow-origin", b"*"), (b"clear-site-data", b'"*"')]
        return Response(200, b"<script>alert(1)</script>", [(b"content-type", b"text/html"), *hostile])

    async def _events(self, request: Request) -> AsyncIterator[bytes]:
        try:
            yield b'{"type":"ADDED"}\n'
            assert request.disconnected is not None
            await request.disconnected()
        finally:
            self.watch_ended.set()


async def _echo(transport: asyncio.Transport, early: bytes) -> None:
    transport.write(b"hello\n")
    transport.close()


class Browser:
    """Speaks to a console over a socket of its own for each request, with exactly these headers."""

    def __init__(self, address: str) -> None:
        self.address = urlsplit(address)
        self.host = self.address.netloc
        self.origin = f"http://{self.host}"
        self.token = parse_qs(self.address.query)["token"][0]
        self.cookie = ""

    async def open(self) -> None:
        status, headers, _ = await self.ask("GET", f"/?token={self.token}")
        assert status == 200
        self.cookie = headers["set-cookie"].partition(";")[0]

    async def send(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> asyncio.StreamReader:
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.address.port)
        sent = {"Host": self.host, "Cookie": self.cookie, "Connection": "close", **headers}
        if body:
            sent["Content-Length"] = str(len(body))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items() if value)]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        return reader

    async def ask(
        self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, dict[str, str], bytes]:
        reader = await self.send(method, target, headers or {}, body)
        status, answered = await head_of(reader)
        rest = await reader.read()
        self.writer.close()
        return status, answered, rest


async def head_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    return int(status.split()[1]), {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def browser(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Browser]:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>the page")
    (tmp_path / "assets" / "a.js").write_text("1")
    (tmp_path / "assets" / "large.js").write_text("1;" * 5000)
    behind = Server(cluster, [ListenEndpoint("127.0.0.1", 0)])
    await behind.start()
    config = ClientConfig(
        host=f"http://127.0.0.1:{behind.port}", token="secret", impersonate=ImpersonationConfig(user="ann")
    )
    console = Console(config, page=Page(tmp_path))
    yield Browser(await console.start())
    await console.close()
    await behind.abort()


async def test_the_token_opens_the_page_once(browser: Browser) -> None:
    await browser.open()
    assert (await browser.ask("GET", "/"))[2] == b"<!doctype html>the page"
    opened, browser.cookie = browser.cookie, ""
    again = await browser.ask("GET", f"/?token={browser.token}")
    assert again[0] == 401
    assert "set-cookie" not in again[1]
    assert opened


async def test_the_cookie_is_kept_from_scripts_and_other_sites(browser: Browser) -> None:
    _, headers, _ = await browser.ask("GET", f"/?token={browser.token}")
    assert headers["set-cookie"].partition("; ")[2] == "Path=/; HttpOnly; SameSite=Strict"


@pytest.mark.parametrize("target", ["/", "/assets/a.js", "/api/v1/pods", "/metrics", "/?token=guess", "/?token=%C3%A9"])
async def test_nothing_is_shown_without_a_session(browser: Browser, cluster: Cluster, target: str) -> None:
    for cookie in ("", f"pilothouse-console-{browser.address.port}=guess", "other=1"):
        browser.cookie = cookie
        assert (await browser.ask("GET", target))[0] == 401
    assert not cluster.asked


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.nip.io:{port}"]
)
async def test_a_name_that_resolves_to_loopback_is_refused(browser: Browser, cluster: Cluster, host: str) -> None:
    await browser.open()
    named = host.format(port=browser.address.port)
    assert (await browser.ask("GET", "/api", {"Host": named, "Origin": f"http://{named}"}))[0] == 421
    assert not cluster.asked


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://{host}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_page_of_another_origin_reads_nothing(
    browser: Browser, cluster: Cluster, headers: dict[str, str]
) -> None:
    await browser.open()
    sent = {name: value.format(host=browser.host) for name, value in headers.items()}
    assert (await browser.ask("GET", "/api/v1/secrets", sent))[0] == 403
    assert (await browser.ask("GET", "/", sent))[0] == 403
    assert not cluster.asked


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://evil.example"}])
async def test_a_write_must_come_from_the_page(browser: Browser, cluster: Cluster, headers: dict[str, str]) -> None:
    await browser.open()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert (await browser.ask(method, "/api/v1/pods", headers, b"{}"))[0] == 403
    assert not cluster.asked


async def test_a_web_socket_must_come_from_the_page(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert (await head_of(await browser.send("GET", "/api/v1/pods/a/exec", upgrade)))[0] == 403
    browser.writer.close()
    reader = await browser.send("GET", "/api/v1/pods/a/exec", {**upgrade, "Origin": browser.origin})
    assert (await head_of(reader))[0] == 101
    assert await reader.read() == b"hello\n"
    browser.writer.close()
    ((_, _, headers, _),) = cluster.asked
    assert (headers[b"authorization"], headers[b"impersonate-user"]) == (b"Bearer secret", b"ann")
    assert b"cookie" not in headers


async def test_streams_share_one_web_socket_of_the_page(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    assert (await head_of(await browser.send("GET", "/console/streams", upgrade)))[0] == 403
    browser.writer.close()
    reader = await browser.send("GET", "/console/streams", {**upgrade, "Origin": browser.origin})
    assert (await head_of(reader))[0] == 101

    def send(**message: object) -> None:
        payload = json.dumps(message).encode()
        browser.writer.write(bytes((0x81, 0x80 | len(payload), 0, 0, 0, 0)) + payload)

    async def received() -> bytes:
        _, size = await reader.readexactly(2)
        return await reader.readexactly(size)

    send(open=1, path="/api/v1/watched?watch=1")
    send(open=2, path="/debug/pprof")
    messages = sorted([await received() for _ in range(3)])
    assert messages[0] == b"\0\0\0\1" + b'{"type":"ADDED"}\n'
    assert [json.loads(message) for message in messages[1:]] == [
        {"id": 1, "status": 200},
        {"id": 2, "status": 404, "body": "the console does not forward this path"},
    ]
    send(close=1)
    async with asyncio.timeout(PATIENCE):
        await cluster.watch_ended.wait()
    browser.writer.close()
    assert [path for _, path, _, _ in cluster.asked] == ["/api/v1/watched"]


async def test_a_restart_on_the_same_port_keeps_the_session(browser: Browser, tmp_path: Path) -> None:
    await browser.open()
    config = ClientConfig(host="http://127.0.0.1:1", token="secret")
    first = Console(config, page=Page(tmp_path))
    again = Browser(await first.start())
    await again.open()
    await first.close()
    second = Console(config, port=again.address.port or 0, page=Page(tmp_path))
    await second.start()
    assert (await again.ask("GET", "/"))[0] == 200
    again.cookie = browser.cookie
    assert (await again.ask("GET", "/"))[0] == 401
    await second.close()


async def test_groups_of_an_impersonated_user_are_sent_one_by_one(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    sent = {"Origin": browser.origin, "Impersonate-User": "bob", "Impersonate-Group": "a, b"}
    assert (await browser.ask("POST", "/apis/x", sent, b"{}"))[0] == 200
    assert cluster.groups == [b"a", b"b"]


async def test_the_page_is_served_compressed(browser: Browser) -> None:
    await browser.open()
    _, headers, body = await browser.ask("GET", "/assets/large.js", {"Accept-Encoding": "gzip, br"})
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == b"1;" * 5000


def test_the_first_load_is_small() -> None:
    assets = BUILT / "assets"
    if not assets.is_dir():
        pytest.skip("the page was not built on this machine")
    index = (BUILT / "index.html").read_text()
    loaded = [file for file in assets.iterdir() if file.name in index]
    script = next(file.read_text() for file in loaded if file.name.endswith(".js"))
    loaded += [file for file in assets.iterdir() if f'from"./{file.name}"' in script]
    assert sum(len(gzip.compress(file.read_bytes())) for file in loaded) < 150_000


def test_metrics_are_reduced_to_the_figures_of_the_page() -> None:
    text = """# HELP apiserver_request_total x
apiserver_request_total{code="200",resource="pods",verb="GET"} 7
apiserver_request_total{code="500",resource="pods",verb="GET"} 2
apiserver_request_total{code="200",resource="",subresource="/metrics",verb="GET"} 100
apiserver_request_duration_seconds_bucket{le="0.1",verb="GET"} 4
apiserver_request_duration_seconds_bucket{le="0.1",verb="WATCH"} 50
apiserver_longrunning_requests{verb="WATCH",resource="pods"} 3
process_resident_memory_bytes 1.5e+06
"""
    found = figures(text)
    assert (found["requests"], found["failed"], found["serverErrors"], found["watches"]) == (9, 2, 2, 3)
    assert found["latency"] == {"0.1": 4}
    assert found["memoryBytes"] == 1.5e6


async def test_the_page_has_a_policy_without_inline_code_or_other_hosts(browser: Browser) -> None:
    await browser.open()
    for target in ("/", "/assets/a.js", "/no-such-file"):
        _, headers, _ = await browser.ask("GET", target)
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-frame-options"] == "DENY"


async def test_what_the_cluster_answers_is_never_a_part_of_the_page(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    _, headers, _ = await browser.ask("GET", "/api/v1/namespaces/a/pods/b/proxy/")
    assert headers["content-security-policy"].endswith("sandbox")
    assert not {"set-cookie", "access-control-allow-origin", "clear-site-data"} & set(headers)
    for destination in ("script", "style", "iframe", "serviceworker", "worker"):
        sent = {"Sec-Fetch-Dest": destination, "Sec-Fetch-Site": "same-origin"}
        assert (await browser.ask("GET", "/api/v1/namespaces/a/pods/b/proxy/a.js", sent))[0] == 403
    assert len(cluster.asked) == 1


async def test_requests_go_on_as_the_user_of_the_kubeconfig(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    sent = {"Origin": browser.origin, "Authorization": "Bearer stolen", "Content-Type": "application/json"}
    body = json.dumps({"kind": "Pod"}).encode()
    assert (await browser.ask("POST", "/api/v1/pods?dryRun=All", sent, body))[0] == 200
    ((method, path, headers, received),) = cluster.asked
    assert (method, path, received) == ("POST", "/api/v1/pods", body)
    assert headers[b"authorization"] == b"Bearer secret"
    assert not {b"cookie", b"origin"} & set(headers)


async def test_a_watch_is_passed_on_as_it_comes_and_ends_with_its_reader(browser: Browser, cluster: Cluster) -> None:
    await browser.open()
    reader = await browser.send("GET", "/api/v1/watched?watch=1", {})
    assert (await head_of(reader))[0] == 200
    assert b'{"type":"ADDED"}' in await reader.readuntil(b"}\n")
    browser.writer.close()
    async with asyncio.timeout(PATIENCE):
        await cluster.watch_ended.wait()


@pytest.mark.parametrize("target", ["/debug/pprof", "/apiserver", "/../api", "/assets/../index.html", "/healthz"])
async def test_only_what_the_page_needs_is_passed_on(browser: Browser, cluster: Cluster, target: str) -> None:
    await browser.open()
    assert (await browser.ask("GET", target))[0] == 404
    assert not cluster.asked


async def test_a_cluster_that_is_away_is_said_so(tmp_path: Path) -> None:
    console = Console(ClientConfig(host="http://127.0.0.1:1"), page=Page(tmp_path))
    browser = Browser(await console.start())
    await browser.open()
    status, _, body = await browser.ask("GET", "/version")
    await console.close()
    assert status == 502
    assert b"http://127.0.0.1:1 is unreachable" in body
