"""`pilothouse top` shows what a server does, from its metrics alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from observations import forget_observations
from whole_server import create_config_map, whole_server

from pilothouse.cli.main import main
from pilothouse.cli.monitor.figures import Between, Changes, quantile
from pilothouse.cli.monitor.scrape import Scrape, read_samples, scrape
from pilothouse.testing import API

IN_ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", name="api")
async def _api() -> AsyncIterator[API]:
    forget_observations()
    async with whole_server(recent_requests=50) as api:
        yield api


def looked_at(at: float, text: str) -> Scrape:
    return Scrape(at, read_samples(text))


@IN_ONE_LOOP
async def test_what_was_asked_between_two_looks_is_counted_by_verb_and_resource(api: API) -> None:
    async with api.client() as client:
        before = await scrape(client)
        for number in range(3):
            await create_config_map(api, f"seen-{number}")
        figures = Between(before, await scrape(client), 0.0).figures()
    [creates] = [row for row in figures.verbs if row.name == "POST"]
    assert creates.rate > 0
    assert creates.median is not None
    assert "configmaps" in [row.name for row in figures.resources]
    assert dict(figures.objects)["configmaps"] >= 3
    assert figures.revision > 0
    assert figures.slowest is not None
    assert any("configmaps" in request["target"] for request in figures.slowest)


@IN_ONE_LOOP
async def test_one_screen_has_every_part(api: API, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["top", "--once", "--interval", "0.1", "--kubeconfig", str(api.kubeconfig)]
    assert await asyncio.to_thread(main, words) == 0
    shown = capsys.readouterr().out
    for part in ("pilothouse top", "Requests by verb", "Slowest", "Store", "Watches", "Priority levels", "Work queues"):
        assert part in shown


@IN_ONE_LOOP
async def test_a_server_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(main, ["top", "--once", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert "none" in capsys.readouterr().err


def test_a_counter_that_began_anew_is_not_counted_backwards() -> None:
    before = looked_at(0.0, "process_cpu_seconds_total 90\n")
    after = looked_at(2.0, "process_cpu_seconds_total 4\n")
    assert Changes(before, after).rate("process_cpu_seconds_total") == 2.0


def test_workers_are_shown_each() -> None:
    worker = 'pilothouse_worker_{}{{worker="{}"}} {}\n'
    memory = "".join(worker.format("resident_memory_bytes", number, 1000 * number) for number in (1, 2))
    before = looked_at(0.0, memory + worker.format("cpu_seconds_total", 1, 1))
    after = looked_at(2.0, memory + worker.format("cpu_seconds_total", 1, 2))
    workers = Between(before, after, 0.0).figures().workers
    assert [(at.name, at.processor, at.memory) for at in workers] == [("1", 0.5, 1000), ("2", 0.0, 2000)]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_that_reaches_it(sizes: list[int], of: float) -> None:
    bounds = [float(index + 1) for index in range(len(sizes) - 1)] + [float("inf")]
    below = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    found = quantile([(bound, float(count)) for bound, count in zip(bounds, below, strict=True)], of)
    if not below[-1]:
        assert found is None
        return
    reached = next(index for index, count in enumerate(below) if count >= below[-1] * of and count)
    assert found is not None
    assert float(reached) <= found <= min(bounds[reached], float(len(sizes) - 1)) + 1e-9
