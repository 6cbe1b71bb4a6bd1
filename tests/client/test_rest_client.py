"""The REST client on a real HTTP server: verbs, options, typed errors, retries, rate limit, warnings."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from api_server_fixture import ApiServer, is_watch

from pilothouse.client.config.model import ClientConfig
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.client import Client, log_each_once, warnings_in
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed, ConnectionRefused, InvalidResponse, RequestTimedOut
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.options import DeleteOptions, ListOptions, PatchType, WriteOptions
from pilothouse.machinery.errors import AlreadyExists, Conflict, Expired, NotFound
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.server_errors import ServiceUnavailable, TooManyRequests
from pilothouse.machinery.status_error import StatusError


def config_map(name: str, **data: str) -> Json:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def test_an_object_can_be_created_read_changed_and_deleted(client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    created = await maps.create(config_map("a", x="1"))
    assert await maps.get("a") == created
    created["data"] = {"x": "2"}
    updated = await maps.update(created)
    patched = await maps.patch("a", {"data": {"y": "3"}})
    assert int(patched["metadata"]["resourceVersion"]) > int(updated["metadata"]["resourceVersion"])
    assert patched["data"] == {"y": "3"}
    await maps.delete("a")
    with pytest.raises(NotFound):
        await maps.get("a")


async def test_what_the_server_refuses_is_raised_as_the_class_of_its_reason(server: ApiServer, client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    old = await maps.create(config_map("a"))
    with pytest.raises(AlreadyExists):
        await maps.create(config_map("a"))
    await maps.patch("a", {"data": {}})
    with pytest.raises(Conflict):
        await maps.update(old)
    with pytest.raises(ValueError, match="name may not be empty"):
        await maps.get("")


async def test_items_of_a_list_look_like_objects_that_were_read_alone(client: Client) -> None:
    maps = client.resource("v1", "configmaps").namespace("default")
    created = await maps.create(config_map("a"))
    assert (await maps.list())["items"] == [created]


async def test_pages_go_on_to_the_end(server: ApiServer, client: Client) -> None:
    for name in "abcde":
        await server.put(name)
    pages = [page async for page in client.resource("v1", "configmaps").pages(ListOptions(limit=2))]
    assert [[name_of(item) for item in page["items"]] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    items = client.resource("v1", "configmaps").items(ListOptions(limit=2))
    assert [name_of(item) async for item in items] == ["a", "b", "c", "d", "e"]


async def test_a_collection_can_be_deleted(server: ApiServer, client: Client) -> None:
    await server.put("a")
    await server.put("b", "other")
    await client.resource("v1", "configmaps", namespace="default").delete_collection(
        DeleteOptions(propagation_policy="Background"), ListOptions(label_selector="app=x")
    )
    assert [*server.objects] == ["other/b"]
    assert server.requests[-1][2] == {"labelSelector": "app=x"}


@pytest.mark.parametrize(
    ("type_", "media_type"),
    [
        (PatchType.JSON, "application/json-patch+json"),
        (PatchType.STRATEGIC, "application/strategic-merge-patch+json"),
        (PatchType.APPLY, "application/apply-patch+yaml"),
    ],
)
async def test_each_kind_of_patch_is_sent_under_its_media_type(
    client: Client, type_: PatchType, media_type: str
) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    options = WriteOptions(field_manager="me", dry_run=True, field_validation="Strict")
    echo = await maps.patch("a", [1], type_, options=options, subresource="status")
    assert echo["contentType"] == media_type
    assert echo["query"] == {"fieldManager": "me", "dryRun": "All", "fieldValidation": "Strict"}
    assert echo["path"].endswith("/configmaps/a/status")


async def test_apply_names_its_manager_and_may_force(client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    echo = await maps.apply(config_map("a"), field_manager="me", force=True)
    assert echo["query"] == {"fieldManager": "me", "force": "true"}
    assert echo["body"] == config_map("a")


async def test_a_subresource_can_be_created_under_an_object(client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="default")
    echo = await maps.create({"kind": "Binding"}, name="a", subresource="binding")
    assert echo["path"].endswith("/configmaps/a/binding")


def test_paths_name_groups_namespaces_and_quote_names() -> None:
    client = Client(HttpTransport(ClientConfig(host="http://x")))
    assert client.resource("apps/v1", "deployments").path() == "/apis/apps/v1/deployments"
    assert (
        client.resource("v1", "pods", namespace="n").path("a b/c", "log") == "/api/v1/namespaces/n/pods/a%20b%2Fc/log"
    )
    roles = client.resource("rbac.authorization.k8s.io/v1", "clusterroles")
    assert roles.path("system:node").endswith("/clusterroles/system:node")


def test_delete_options_are_upstreams() -> None:
    options = DeleteOptions(grace_period_seconds=0, uid="u", resource_version="7", dry_run=True)
    assert options.body() == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "dryRun": ["All"],
    }


async def test_a_watch_shows_every_change_and_ends_when_it_is_closed(server: ApiServer, client: Client) -> None:
    await server.put("a")
    options = ListOptions(resource_version=str(server.version), timeout_seconds=60)
    async with await client.resource("v1", "configmaps").watch(options) as events:
        await server.put("b")
        await server.remove("a")
        seen = [await anext(events), await anext(events)]
        assert [(event.type, name_of(event.object)) for event in seen] == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_that_is_refused_raises_at_once(server: ApiServer, client: Client) -> None:
    server.compact()
    with pytest.raises(Expired):
        await client.resource("v1", "configmaps").watch(ListOptions(resource_version="1"))


async def test_a_watch_that_breaks_off_raises(server: ApiServer, client: Client) -> None:
    events = await client.resource("v1", "configmaps").watch()
    await server.wait_for_watches()
    server.cut()
    with pytest.raises(ConnectionFailed):
        await anext(events)


async def test_something_that_is_no_event_is_refused(server: ApiServer, client: Client) -> None:
    events = await client.resource("v1", "configmaps").watch()
    await server.wait_for_watches()
    await server.send_raw(b"hello\n")
    with pytest.raises(InvalidResponse, match="hello"):
        await anext(events)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_request_is_sent_again_when_the_server_asks_for_it(server: ApiServer, status: int) -> None:
    clock = FakeClock()
    async with Client(HttpTransport(ClientConfig(host=server.url)), clock=clock) as client:
        for _ in range(2):
            server.faults.fail(status, retry_after="7")
        answer = asyncio.ensure_future(client.resource("v1", "configmaps", namespace="default").create(config_map("a")))
        for _ in range(2):
            await clock.wait_for_timers()
            assert clock.next_timer() == 7
            clock.advance(7)
        assert name_of(await answer) == "a"


async def test_a_server_that_asks_for_ever_is_given_up_after_ten_retries(server: ApiServer) -> None:
    clock = FakeClock()
    async with Client(HttpTransport(ClientConfig(host=server.url)), clock=clock) as client:
        for _ in range(20):
            server.faults.fail(429, reason="TooManyRequests", retry_after="1")
        answer = asyncio.ensure_future(client.resource("v1", "configmaps").list())
        for _ in range(10):
            await clock.wait_for_timers()
            clock.advance(1)
        with pytest.raises(TooManyRequests) as refused:
            await answer
    assert refused.value.retry_after_seconds == 1
    assert len(server.requests) == 11


@pytest.mark.parametrize("status", [500, 503])
async def test_a_failure_without_retry_after_is_raised_at_once(server: ApiServer, client: Client, status: int) -> None:
    server.faults.fail(status, reason="ServiceUnavailable")
    with pytest.raises(ServiceUnavailable):
        await client.resource("v1", "configmaps").list()
    assert len(server.requests) == 1


async def test_an_answer_that_is_no_status_becomes_an_error_of_its_code(server: ApiServer, client: Client) -> None:
    with pytest.raises(NotFound, match="404"):
        await client.get_json("/nothing/here")
    server.faults.next.append((lambda _: True, 418, {"no": "status"}, {}))
    with pytest.raises(StatusError) as error:
        await client.get_json("/version")
    assert error.value.code == 418


async def test_a_get_is_repeated_when_its_connection_breaks_but_a_write_is_not() -> None:
    connections = 0

    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    clock = FakeClock()
    async with server, Client(HttpTransport(ClientConfig(host=f"http://127.0.0.1:{port}")), clock=clock) as client:
        with pytest.raises(ConnectionFailed):
            await client.request("POST", "/x", body={})
        writes = connections
        answer = asyncio.ensure_future(client.get_json("/x"))
        await clock.wait_for_timers()
        assert writes == 1
        clock.advance(1)
        await clock.wait_for_timers()
        assert connections > 2
        answer.cancel()


async def test_nobody_listening_and_no_answer_in_time_are_told_apart(server: ApiServer) -> None:
    async with connect(ClientConfig(host="http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionRefused):
            await client.get_json("/version")
    async with connect(ClientConfig(host=server.url, timeout=0.01)) as client:

        async def first_chunk() -> bytes:
            """Time out between two chunks or, on a busy machine, before the headers."""
            response = await client.stream("/api/v1/configmaps", {"watch": "true"}, timeout=0.01)
            return await anext(response.chunks())

        with pytest.raises(RequestTimedOut):
            await first_chunk()


async def test_an_answer_that_is_no_json_is_refused(server: ApiServer, client: Client) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n<htm>")
        writer.close()

    listener = await asyncio.start_server(page, "127.0.0.1", 0)
    async with (
        listener,
        connect(ClientConfig(host=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")) as other,
    ):
        with pytest.raises(InvalidResponse, match="did not answer JSON"):
            await other.get_json("/version")
        assert await other.request_text("/healthz") == "<htm>"


async def test_requests_wait_for_the_rate_limit(server: ApiServer) -> None:
    clock = FakeClock()
    transport = HttpTransport(ClientConfig(host=server.url))
    async with Client(transport, rate_limiter=TokenBucket(2, 1, clock), clock=clock) as client:
        maps = client.resource("v1", "configmaps")
        await maps.list()
        second = asyncio.ensure_future(maps.list())
        await clock.wait_for_timers()
        assert clock.next_timer() == pytest.approx(0.5)
        assert len(server.requests) == 1
        clock.advance(0.5)
        await second


async def test_warnings_are_handed_on(server: ApiServer) -> None:
    heard: list[str] = []
    async with Client(HttpTransport(ClientConfig(host=server.url)), on_warning=heard.append) as client:
        server.faults.next.append((lambda _: True, 200, {}, {"warning": '299 - "v1 \\"x\\" is old", 299 - "second"'}))
        await client.get_json("/version")
    assert heard == ['v1 "x" is old', "second"]


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    handle = log_each_once()
    for _ in range(2):
        for text in warnings_in({"warning": '299 - "old", 199 - "misc"'}):
            handle(text)
    assert caplog.text.count("old") == 1
    assert "misc" not in caplog.text


async def test_a_watch_is_retried_like_any_request(server: ApiServer) -> None:
    clock = FakeClock()
    async with Client(HttpTransport(ClientConfig(host=server.url)), clock=clock) as client:
        server.faults.fail(503, retry_after="2", when=is_watch)
        events = asyncio.ensure_future(client.resource("v1", "configmaps").watch())
        await clock.wait_for_timers()
        clock.advance(2)
        await (await events).aclose()


def test_importing_the_client_imports_no_http_library_and_no_server() -> None:
    code = (
        "import sys, pilothouse.client.rest.connect, pilothouse.client.cache.informer_factory, "
        "pilothouse.client.workqueue.rate_limiting, pilothouse.client.controller\n"
        "heavy = {'aiohttp', 'prometheus_client', 'yaml', 'pilothouse.apiserver'} & sys.modules.keys()\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


class CountedRequests:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def throttled(self, method: str, host: str, seconds: float) -> None:
        self.told.append(("throttled", method, seconds))

    def attempted(self, method: str, host: str, code: str, *, again: bool) -> None:
        self.told.append(("attempted", method, code, again))

    def sent(self, method: str, host: str, size: int) -> None:
        self.told.append(("sent", method, size))

    def received(self, method: str, host: str, size: int) -> None:
        self.told.append(("received", method, size > 0))

    def done(self, method: str, host: str, seconds: float) -> None:
        self.told.append(("done", method, seconds))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> CountedRequests:
    counted = CountedRequests()
    monkeypatch.setattr("pilothouse.client.rest.metrics._metrics", counted)
    return counted


async def test_every_attempt_of_a_request_is_counted(server: ApiServer, counted: CountedRequests) -> None:
    clock = FakeClock()
    async with Client(HttpTransport(ClientConfig(host=server.url)), clock=clock) as client:
        server.faults.fail(503, retry_after="7")
        answer = asyncio.ensure_future(client.resource("v1", "configmaps").list())
        await clock.wait_for_timers()
        clock.advance(7)
        await answer
    assert counted.told == [
        ("sent", "GET", 0),
        ("attempted", "GET", "503", False),
        ("received", "GET", True),
        ("sent", "GET", 0),
        ("attempted", "GET", "200", True),
        ("done", "GET", 7),
        ("received", "GET", True),
    ]


async def test_a_request_that_nobody_answers_is_counted_as_an_error(counted: CountedRequests) -> None:
    limiter = TokenBucket(1, 1)
    async with Client(HttpTransport(ClientConfig(host="http://127.0.0.1:1")), rate_limiter=limiter) as client:
        with pytest.raises(ConnectionRefused):
            await client.get_json("/version")
    kinds = [told[:3] for told in counted.told if told[0] in ("throttled", "attempted")]
    assert [kind[0] for kind in kinds] == ["throttled", "attempted"]
    assert kinds[1] == ("attempted", "GET", "<error>")
