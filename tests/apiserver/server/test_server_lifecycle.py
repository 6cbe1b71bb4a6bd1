"""The run of a server: what happens in which order, from listening to the last resource released."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pilothouse.apiserver.filters.wait_group import WaitGroup
from pilothouse.apiserver.http import Request, Response, text
from pilothouse.apiserver.server.checks import Unhealthy
from pilothouse.apiserver.server.health import READYZ, HealthCheck
from pilothouse.apiserver.server.hooks import HookContext, HookFailed
from pilothouse.apiserver.server.lifecycle import not_found
from pilothouse.apiserver.server.run import RunConfig, Runner
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.machinery.server_errors import ServiceUnavailable


async def no_body(limit: int) -> bytes:
    return b""


async def nobody(request: Request) -> Response:
    return text(404, "404 page not found\n")


class Stage:
    """A server whose every step is written down, with a listener that has no socket."""

    connections = 0

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.stop = asyncio.Event()
        self.ready = asyncio.Event()
        self.in_flight = WaitGroup()
        self.server = GenericAPIServer("test", nobody)
        self.server.add_post_start_hook("hook", self._post_start)
        self.server.add_pre_shutdown_hook("hook", self._step("pre-shutdown hook"))
        self.server.add_drained(self._step("watches ended"))
        self.server.add_destroy(self._step("released"))

    def _step(self, name: str) -> Callable[[], asyncio.Future[None]]:
        def step() -> asyncio.Future[None]:
            self.steps.append(name)
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done

        return step

    async def _post_start(self, context: HookContext) -> None:
        self.steps.append("post-start hook")
        context.spawn(self._work(), name="work")

    async def _work(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.steps.append("work stopped")

    async def start(self) -> None:
        self.steps.append("listening")

    async def shutdown(self, timeout: float) -> None:
        self.steps.append(f"closed within {timeout:g}s")

    async def drain(self, timeout: float) -> None:
        self.in_flight.close()
        drained = await self.in_flight.wait(timeout)
        self.steps.append("drained" if drained else "not drained")

    def run(self, *, delay: float = 0, retry_after: bool = False, request_timeout: float = 60) -> asyncio.Task[None]:
        config = RunConfig(
            serving=[self],
            drain=self.drain,
            run_options=ServerRunOptions(
                request_timeout=request_timeout,
                shutdown_delay_duration=delay,
                shutdown_send_retry_after=retry_after,
            ),
        )
        return asyncio.create_task(Runner(self.server.prepare_run(), config).run(self.stop, ready=self.ready.set))

    async def readyz(self) -> int:
        return (await self.server.handler(Request("GET", "/readyz", "", [], no_body))).status


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_a_server_starts_and_stops_in_this_order(stage: Stage) -> None:
    running = stage.run()
    await stage.ready.wait()
    assert stage.steps == ["listening", "post-start hook"]
    stage.stop.set()
    await running
    assert stage.steps[2:4] == ["pre-shutdown hook", "drained"]
    assert set(stage.steps[4:7]) == {"closed within 60s", "work stopped", "watches ended"}
    assert stage.steps[7:] == ["released"]


async def test_with_retry_after_the_server_listens_until_requests_have_ended(stage: Stage) -> None:
    running = stage.run(retry_after=True)
    await stage.ready.wait()
    stage.in_flight.enter()
    stage.stop.set()
    await stage.server.lifecycle.not_accepting_new_request.wait()
    await asyncio.sleep(0)
    assert not stage.server.lifecycle.http_server_stopped_listening.signaled
    stage.in_flight.leave()
    await running
    expected = ["pre-shutdown hook", "drained", "work stopped", "watches ended", "closed within 2s", "released"]
    assert stage.steps[2:] == expected


async def test_a_request_in_flight_is_waited_for(stage: Stage) -> None:
    running = stage.run()
    await stage.ready.wait()
    stage.in_flight.enter()
    stage.stop.set()
    await stage.server.lifecycle.http_server_stopped_listening.wait()
    assert not running.done()
    assert "released" not in stage.steps
    stage.in_flight.leave()
    await running
    assert stage.server.lifecycle.in_flight_requests_drained.signaled


async def test_a_request_that_never_ends_is_waited_for_no_longer_than_the_request_timeout(stage: Stage) -> None:
    running = stage.run(request_timeout=0.001)
    await stage.ready.wait()
    stage.in_flight.enter()
    stage.stop.set()
    await running
    assert "not drained" in stage.steps


async def test_the_server_is_unready_but_serves_while_the_shutdown_is_delayed(stage: Stage) -> None:
    running = stage.run(delay=3600)
    await stage.ready.wait()
    assert await stage.readyz() == 200
    stage.stop.set()
    await stage.server.lifecycle.pre_shutdown_hooks_stopped.wait()
    assert await stage.readyz() == 500
    assert not stage.server.lifecycle.not_accepting_new_request.signaled
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_failing_post_start_hook_ends_the_run_and_releases_everything(stage: Stage) -> None:
    async def broken(context: HookContext) -> None:
        raise OSError("no such thing")

    stage.server.add_post_start_hook("broken", broken)
    with pytest.raises(HookFailed, match='PostStartHook "broken" failed: no such thing'):
        await stage.run()
    assert stage.steps[-4:] == ["closed within 0s", "work stopped", "watches ended", "released"]
    assert not stage.ready.is_set()


async def test_a_stop_while_a_hook_still_runs_is_obeyed(stage: Stage) -> None:
    started = asyncio.Event()

    async def endless(context: HookContext) -> None:
        started.set()
        await asyncio.Event().wait()

    stage.server.add_post_start_hook("endless", endless)
    running = stage.run()
    await started.wait()
    stage.stop.set()
    await running
    assert stage.steps[-1] == "released"


async def test_the_server_is_ready_only_when_every_check_passes(stage: Stage) -> None:
    healthy = asyncio.Event()
    asked = asyncio.Event()

    async def probe() -> None:
        asked.set()
        if not healthy.is_set():
            raise Unhealthy("not yet")

    stage.server.add_health_check(HealthCheck("late", probe, endpoints=(READYZ,)))
    running = stage.run()
    await asked.wait()
    assert not stage.ready.is_set()
    healthy.set()
    await stage.ready.wait()
    stage.stop.set()
    await running


async def test_a_port_that_can_not_be_had_ends_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def taken() -> None:
        raise OSError("address already in use")

    monkeypatch.setattr(stage, "start", taken)
    with pytest.raises(OSError, match="address already in use"):
        await stage.run()
    assert stage.steps == ["closed within 0s", "watches ended", "released"]


async def test_an_unknown_path_is_503_until_all_paths_are_installed(stage: Stage) -> None:
    handler = not_found(stage.server.lifecycle.mux_and_discovery_complete)
    request = Request("GET", "/nowhere", "", [], no_body)
    with pytest.raises(ServiceUnavailable) as early:
        await handler(request)
    assert early.value.retry_after_seconds == 5
    running = stage.run()
    await stage.ready.wait()
    answer = await handler(request)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    stage.stop.set()
    await running
