"""The generic API server: delegation, hooks and what the outermost server shows of a chain."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from patience import PATIENCE

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.apiserver.server.hooks import HookContext, HookFailed, run_post_start_hooks, run_pre_shutdown_hooks
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.machinery.errors import MethodNotAllowed, NotFound


async def not_found(request: Request) -> Response:
    raise NotFound("the server could not find the requested resource")


async def no_body(limit: int) -> bytes:
    return b""


async def get(handler: Handler, path: str, method: str = "GET") -> bytes:
    answer = await handler(Request(method, path, "", [], no_body))
    assert isinstance(answer.body, bytes)
    return answer.body


def saying(word: str) -> Handler:
    async def handler(request: Request) -> Response:
        return text(200, word)

    return handler


async def nothing(context: HookContext) -> None: ...


async def passing() -> None: ...


class Chain:
    def __init__(self) -> None:
        self.inner = GenericAPIServer("inner", not_found)
        self.outer = GenericAPIServer("outer", self.inner)


@pytest.fixture
async def chain() -> Chain:
    return Chain()


async def test_what_a_server_does_not_know_its_delegate_answers(chain: Chain) -> None:
    chain.outer.mux.handle("/both", saying("outer"))
    chain.inner.mux.handle("/both", saying("inner"))
    chain.inner.mux.handle("/below", saying("inner"))
    assert await get(chain.outer.handler, "/both") == b"outer"
    assert await get(chain.outer.handler, "/below") == b"inner"
    with pytest.raises(NotFound):
        await get(chain.outer.handler, "/nowhere")


async def test_the_index_lists_the_paths_of_the_whole_chain(chain: Chain) -> None:
    chain.inner.mux.handle("/inner", saying("inner"))
    chain.outer.mux.handle("/outer", saying("outer"))
    chain.outer.prepare_run()
    paths = orjson.loads(await get(chain.outer.handler, "/"))["paths"]
    assert paths == sorted(paths)
    assert {"/inner", "/outer", "/healthz", "/readyz/shutdown", "/version", "/metrics", "/metrics/slis"} <= set(paths)
    assert not {"/", "/index.html"} & set(paths)


async def test_a_path_registered_while_serving_appears_in_the_index(chain: Chain) -> None:
    chain.outer.prepare_run()
    chain.inner.mux.handle("/late", saying("late"))
    assert b'"/late"' in await get(chain.outer.handler, "/")


async def test_the_outermost_server_shows_the_checks_of_all_shared_ones_once(chain: Chain) -> None:
    chain.inner.add_health_check(HealthCheck("inner", passing))
    chain.outer.add_health_check(HealthCheck("outer", passing))
    assert [check.name for check in chain.outer.health_checks()] == [
        "ping",
        "log",
        "loopback-serving-certificate",
        "inner",
        "outer",
    ]


async def test_version_has_the_fields_that_clients_read(chain: Chain) -> None:
    chain.outer.prepare_run()
    version = orjson.loads(await get(chain.outer.handler, "/version"))
    assert (version["major"], version["minor"], version["gitVersion"][:6]) == ("1", "36", "v1.36.")
    assert {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"} <= set(version)
    assert await get(chain.outer.handler, "/version/") == await get(chain.outer.handler, "/version")
    with pytest.raises(MethodNotAllowed):
        await get(chain.outer.handler, "/version", method="POST")


async def test_metrics_are_prometheus_text(chain: Chain) -> None:
    chain.outer.prepare_run()
    lines = (await get(chain.outer.handler, "/metrics")).decode().splitlines()
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert any(line.startswith("kubernetes_build_info{") for line in lines)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert families == sorted(families)
    await get(chain.outer.handler, "/healthz")
    slis = (await get(chain.outer.handler, "/metrics/slis")).decode()
    assert 'kubernetes_healthcheck{name="ping",type="healthz"} 1' in slis
    assert "_created" not in slis


async def test_deleting_the_results_of_health_checks_resets_them(chain: Chain) -> None:
    chain.outer.prepare_run()
    await get(chain.outer.handler, "/healthz")
    assert await get(chain.outer.handler, "/metrics/slis", method="DELETE") == b"metrics reset\n"
    assert await get(chain.outer.handler, "/metrics/slis") == b""


async def test_a_post_start_hook_fails_its_check_until_it_has_finished(chain: Chain) -> None:
    gate = asyncio.Event()

    async def hook(context: HookContext) -> None:
        await gate.wait()

    chain.inner.add_post_start_hook("slow", hook)
    chain.outer.prepare_run()
    assert await get(chain.outer.handler, "/readyz/poststarthook/slow") == b"internal server error: not finished\n"
    running = asyncio.create_task(run_post_start_hooks(chain.outer.post_start_hooks(), HookContext()))
    gate.set()
    await running
    assert await get(chain.outer.handler, "/readyz/poststarthook/slow") == b"ok"


async def test_post_start_hooks_run_side_by_side(chain: Chain) -> None:
    first, second = asyncio.Event(), asyncio.Event()

    async def one(context: HookContext) -> None:
        first.set()
        await second.wait()

    async def other(context: HookContext) -> None:
        second.set()
        await first.wait()

    chain.inner.add_post_start_hook("one", one)
    chain.outer.add_post_start_hook("other", other)
    await asyncio.wait_for(run_post_start_hooks(chain.outer.post_start_hooks(), HookContext()), PATIENCE)


async def test_a_failing_post_start_hook_is_named_and_ends_the_others(chain: Chain) -> None:
    cancelled = asyncio.Event()

    async def endless(context: HookContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def broken(context: HookContext) -> None:
        raise OSError("no such thing")

    chain.inner.add_post_start_hook("endless", endless)
    chain.outer.add_post_start_hook("broken", broken)
    with pytest.raises(HookFailed, match='PostStartHook "broken" failed: no such thing'):
        await run_post_start_hooks(chain.outer.post_start_hooks(), HookContext())
    assert cancelled.is_set()


async def test_two_hooks_of_one_name_are_refused_anywhere_in_the_chain(chain: Chain) -> None:
    chain.inner.add_post_start_hook("twin", nothing)
    with pytest.raises(ValueError, match="already registered"):
        chain.outer.add_post_start_hook("twin", nothing)


async def test_nothing_can_be_added_to_any_server_once_prepared(chain: Chain) -> None:
    chain.outer.prepare_run()
    for server in (chain.inner, chain.outer):
        with pytest.raises(RuntimeError, match="already prepared"):
            server.add_post_start_hook("late", nothing)
        with pytest.raises(RuntimeError, match="already prepared"):
            server.add_health_check(HealthCheck("late", passing))


async def test_every_pre_shutdown_hook_runs_even_when_one_fails(chain: Chain) -> None:
    ran: list[str] = []

    async def broken() -> None:
        raise OSError("gone")

    async def fine() -> None:
        ran.append("fine")

    chain.inner.add_pre_shutdown_hook("broken", broken)
    chain.outer.add_pre_shutdown_hook("fine", fine)
    failures = await run_pre_shutdown_hooks(chain.outer.pre_shutdown_hooks())
    assert [str(failure) for failure in failures] == ['PreShutdownHook "broken" failed: gone']
    assert ran == ["fine"]


async def test_spawned_work_is_cancelled_last_first_when_the_server_stops() -> None:
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    context = HookContext()
    context.spawn(work("first"), name="first")
    context.spawn(work("second"), name="second")
    await asyncio.sleep(0)
    await context.stop()
    assert ended == ["second", "first"]


async def test_resources_are_released_outermost_first(chain: Chain) -> None:
    released: list[str] = []

    async def release(name: str) -> None:
        released.append(name)

    chain.inner.add_destroy(lambda: release("inner"))
    chain.outer.add_destroy(lambda: release("outer"))
    await chain.outer.destroy()
    assert released == ["outer", "inner"]
