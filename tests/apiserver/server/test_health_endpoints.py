"""Health endpoints: bodies, exclusion, the livez grace period, the store's check."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.server.checks import StorePing, Unhealthy, storage_checks
from pilothouse.apiserver.server.health import READYZ, HealthCheck, delayed
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.machinery.errors import NotFound


async def not_found(request: Request) -> Response:
    raise NotFound("the server could not find the requested resource")


async def no_body(limit: int) -> bytes:
    return b""


async def passing() -> None: ...


async def failing() -> None:
    raise Unhealthy("the secret reason")


async def get(server: GenericAPIServer, url: str) -> Response:
    path, _, query = url.partition("?")
    return await server.handler(Request("GET", path, query, [], no_body))


def body(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return response.body.decode()


@pytest.fixture
async def server() -> GenericAPIServer:
    server = GenericAPIServer("test", not_found)
    server.add_health_check(HealthCheck("good", passing), HealthCheck("etcd-1", passing, group="etcd"))
    return server


async def test_a_healthy_server_says_ok(server: GenericAPIServer) -> None:
    server.prepare_run()
    for path in ("/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/good", "/readyz/shutdown"):
        answer = await get(server, path)
        assert (answer.status, body(answer)) == (200, "ok")
        assert (b"content-type", b"text/plain; charset=utf-8") in answer.headers


async def test_verbose_names_every_check_in_order(server: GenericAPIServer) -> None:
    server.prepare_run()
    assert body(await get(server, "/readyz?verbose")) == (
        "[+]ping ok\n[+]log ok\n[+]good ok\n[+]etcd-1 ok\n[+]shutdown ok\nreadyz check passed\n"
    )
    assert body(await get(server, "/livez?verbose=")) == (
        "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]good ok\n[+]etcd-1 ok\nlivez check passed\n"
    )


async def test_a_failed_check_is_named_but_its_reason_is_withheld(server: GenericAPIServer) -> None:
    server.add_health_check(HealthCheck("bad", failing))
    server.prepare_run()
    answer = await get(server, "/healthz")
    assert answer.status == 500
    assert (b"x-content-type-options", b"nosniff") in answer.headers
    assert body(answer) == (
        "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]good ok\n[+]etcd-1 ok\n"
        "[-]bad failed: reason withheld\nhealthz check failed\n"
    )


async def test_the_failed_check_itself_tells_the_reason(server: GenericAPIServer) -> None:
    server.add_health_check(HealthCheck("bad", failing))
    server.prepare_run()
    answer = await get(server, "/healthz/bad")
    assert (answer.status, body(answer)) == (500, "internal server error: the secret reason\n")


async def test_excluded_checks_are_not_run(server: GenericAPIServer) -> None:
    server.add_health_check(HealthCheck("bad", failing))
    server.prepare_run()
    answer = await get(server, "/healthz?verbose&exclude=bad&exclude=etcd")
    assert answer.status == 200
    assert body(answer) == (
        "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n[+]good ok\n"
        "[+]etcd-1 excluded with etcd: ok\n[+]bad excluded: ok\nhealthz check passed\n"
    )


async def test_excluding_an_unknown_check_warns(server: GenericAPIServer) -> None:
    server.prepare_run()
    warning = 'warn: some health checks cannot be excluded: no matches for "a","b"\n'
    assert warning in body(await get(server, "/healthz?verbose&exclude=b&exclude=a"))


async def test_a_check_for_one_endpoint_is_only_there(server: GenericAPIServer) -> None:
    server.add_health_check(HealthCheck("only-ready", failing, endpoints=(READYZ,)))
    server.prepare_run()
    assert (await get(server, "/livez")).status == 200
    assert (await get(server, "/readyz")).status == 500
    with pytest.raises(NotFound):
        await get(server, "/livez/only-ready")


async def test_the_first_ready_answer_is_signalled(server: GenericAPIServer) -> None:
    server.prepare_run()
    assert not server.lifecycle.has_been_ready.signaled
    await get(server, "/readyz")
    assert server.lifecycle.has_been_ready.signaled


async def test_a_shutdown_turns_only_readyz_red(server: GenericAPIServer) -> None:
    server.prepare_run()
    server.lifecycle.shutdown_initiated.signal()
    assert (await get(server, "/livez")).status == 200
    answer = await get(server, "/readyz")
    assert answer.status == 500
    assert "[-]shutdown failed: reason withheld\n" in body(answer)
    assert body(await get(server, "/readyz/shutdown")) == "internal server error: process is shutting down\n"


async def test_a_failing_boot_check_does_not_end_liveness_during_the_grace_period(server: GenericAPIServer) -> None:
    server.add_health_check(HealthCheck("boot", failing, boot_sequence=True))
    server.prepare_run(livez_grace_period=3600)
    assert (await get(server, "/livez")).status == 200
    assert (await get(server, "/readyz")).status == (await get(server, "/healthz")).status == 500


async def test_a_delayed_check_counts_once_its_time_has_come() -> None:
    now = 0.0
    check = delayed(HealthCheck("boot", failing), until=5.0, clock=lambda: now)
    await check.probe()
    now = 5.1
    with pytest.raises(Unhealthy):
        await check.probe()


class FlakyStore:
    """Only the part of a store that a check uses."""

    def __init__(self) -> None:
        self.pings = 0
        self.answer: asyncio.Future[None] | None = None
        self.failure: Exception | None = None

    async def ping(self) -> None:
        self.pings += 1
        if self.answer:
            await self.answer
        if self.failure:
            raise self.failure


async def test_the_store_is_pinged_once_for_many_checks_within_a_second() -> None:
    store, now = FlakyStore(), 0.0
    ping = StorePing(store, timeout=1, fresh=1, clock=lambda: now)
    await asyncio.gather(*(ping() for _ in range(10)))
    assert store.pings == 1
    now = 1.0
    await ping()
    assert store.pings == 2


async def test_a_store_that_fails_makes_the_server_unready_until_it_recovers(server: GenericAPIServer) -> None:
    store = FlakyStore()
    server.add_health_check(*storage_checks(store, fresh=0))
    server.prepare_run()
    store.failure = Unavailable("disk full")
    assert "[-]etcd failed: reason withheld\n[-]etcd-readiness failed" in body(await get(server, "/readyz"))
    assert body(await get(server, "/healthz/etcd")) == "internal server error: disk full\n"
    store.failure = None
    assert (await get(server, "/readyz")).status == 200


async def test_a_store_that_hangs_is_a_failure_and_not_a_wait() -> None:
    store = FlakyStore()
    store.answer = asyncio.get_running_loop().create_future()
    with pytest.raises(Unhealthy, match="the store did not answer within"):
        await StorePing(store, timeout=0.001, fresh=0)()
