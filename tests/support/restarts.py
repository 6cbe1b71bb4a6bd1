"""Servers that are killed while they work, and started again on the same data."""

from __future__ import annotations

import asyncio
import signal

from serving_process import ServeProcess

from pilothouse.client import Client, ListOptions, ResourceClient, RestWatch, connect, load_kubeconfig


def server_client(server: ServeProcess) -> Client:
    return connect(load_kubeconfig(server.data_dir / "admin.kubeconfig"))


async def changes_of(objects: ResourceClient) -> RestWatch:
    """From now on."""
    since = (await objects.list())["metadata"]["resourceVersion"]
    return await objects.watch(ListOptions(resource_version=since))


async def kill_after(number: int, changes: RestWatch, server: ServeProcess) -> ServeProcess:
    """Kills the server when it has made so many changes, or none for a second, and starts it again."""
    try:
        async with changes:
            for _ in range(number):
                await asyncio.wait_for(anext(changes), 1.0)
    except TimeoutError:
        pass
    server.signal(signal.SIGKILL)
    server.wait()
    server.close()
    return ServeProcess(server.data_dir, *server.flags)
