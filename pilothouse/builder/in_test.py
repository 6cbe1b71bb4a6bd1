"""An extension server in a test: registered in a whole API server, in the same event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pilothouse.builder.command import parse_options
from pilothouse.builder.running import serve
from pilothouse.kinds.conditions import is_true
from pilothouse.testing.running import server as whole_server

if TYPE_CHECKING:
    from pilothouse.builder.server import APIServer
    from pilothouse.client.rest.client import Client
    from pilothouse.testing.api import API

_POLL_INTERVAL = 0.02


@asynccontextmanager
async def in_loop(server: APIServer, flags: Mapping[str, Any]) -> AsyncIterator[API]:
    """Run both servers for the duration of the block. Raises StartError, StartFailed, InvalidDeclaration."""
    async with whole_server(**flags) as api:
        options = parse_options(
            [
                f"--data-dir={api.home.scratch / server.group}",
                f"--kubeconfig={api.kubeconfig}",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                "--register",
            ],
            group=server.group,
        )
        stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(server, options, stop, ready.set_result))
        try:
            await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            await _until_available(server, api)
            yield api
            stop.set()
            await serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def _until_available(server: APIServer, api: API) -> None:
    """Wait until every APIService is available, and the group is in discovery."""
    client = api.client()
    services = client.resource("apiregistration.k8s.io/v1", "apiservices")
    for version in server.place.versions:
        while not is_true(await services.get(f"{version}.{server.group}"), "Available"):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_INTERVAL)
    while server.place.versions and not await _is_discovered(server.group, client):  # noqa: ASYNC110
        await asyncio.sleep(_POLL_INTERVAL)


async def _is_discovered(group: str, client: Client) -> bool:
    return any(item["name"] == group for item in (await client.get_json("/apis"))["groups"])
