"""A kubelet's part played by a test: pods become ready as soon as they are there, and go when they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pilothouse.client import BlockingClient, Client, DeleteOptions, Json, ResourceClient, name_of
from pilothouse.client.clock import cancelled
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.connect import connect
from pilothouse.errors import NotFound
from pilothouse.machinery.times import format_time

BROKEN = "broken"
"""Pods with this image never become ready."""


@asynccontextmanager
async def pods_that_run(client: Client, *, namespace: str = "default") -> AsyncIterator[None]:
    task = asyncio.create_task(_run(client.resource("v1", "pods", namespace=namespace)))
    try:
        yield
    finally:
        await cancelled(task)


@contextmanager
def pods_that_run_beside(kubeconfig: Path, namespace: str) -> Iterator[None]:
    """The same in a thread, for tests that wait for commands."""
    config, stack = load_kubeconfig(kubeconfig), AsyncExitStack()

    async def start() -> None:
        client = connect(config)
        stack.push_async_callback(client.close)
        await stack.enter_async_context(pods_that_run(client, namespace=namespace))

    with BlockingClient(config) as beside:
        beside.run(start())
        try:
            yield
        finally:
            beside.run(stack.aclose())


async def make_ready(pods: ResourceClient, *names: str, since: datetime | None = None) -> None:
    moment = format_time(since or datetime.now(UTC))
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": moment}]
    for name in names:
        await pods.patch(name, {"status": {"phase": "Running", "conditions": ready}}, subresource="status")


async def _run(pods: ResourceClient) -> None:
    async with await pods.watch() as watch:
        async for event in watch:
            with suppress(NotFound):
                if event.type != "DELETED":
                    await _next(pods, event.object)


async def _next(pods: ResourceClient, pod: Json) -> None:
    if pod["metadata"].get("deletionTimestamp"):
        await pods.delete(name_of(pod), DeleteOptions(grace_period_seconds=0))
    elif pod["status"].get("phase") == "Pending" and pod["spec"]["containers"][0]["image"] != BROKEN:
        await make_ready(pods, name_of(pod))
