"""Controllers on a whole server in this process: aggregator, kube and extensions on a real embedded store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from patience import PATIENCE
from prometheus_client import CollectorRegistry
from whole_server import whole_server

from pilothouse.client import Client, DeleteOptions, Json, ListOptions, name_of
from pilothouse.client.clock import cancelled
from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled


class ImpersonatingTransport:
    """The administrator's requests, made as a controller's service account: with its rights, and no more."""

    def __init__(self, transport: Transport, account: str) -> None:
        self._transport = transport
        self._headers = {"impersonate-user": f"system:serviceaccount:kube-system:{account}"}

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._transport.send(replace(request, headers={**request.headers, **self._headers}))

    async def close(self) -> None:
        return


@dataclass(frozen=True)
class ControlledServer:
    """Its namespaces are emptied at once."""

    client: Client
    config: ControllerConfig = field(default_factory=lambda: ControllerConfig(namespace_deletion_grace_period=0.0))

    def client_as(self, account: str) -> Client:
        """A client of the service account in kube-system."""
        return Client(ImpersonatingTransport(self.client.transport, account), user_agent="kube-controller-manager")

    async def create_namespace(self, name: str, **fields: Any) -> Json:
        return await self.client.resource("v1", "namespaces").create({"metadata": {"name": name}, **fields})

    async def install(self, definition: Json) -> None:
        """Returns when the custom resources are served."""
        definitions = self.client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        await definitions.create(definition)
        selected = ListOptions(field_selector=f"metadata.name={name_of(definition)}", timeout_seconds=PATIENCE)
        async with await definitions.watch(selected) as watch:
            async for event in watch:
                conditions = (event.object.get("status") or {}).get("conditions") or ()
                if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
                    return
        raise AssertionError(f"{name_of(definition)} is not served")

    async def delete_namespace(self, name: str, options: DeleteOptions | None = None) -> None:
        await self.client.resource("v1", "namespaces").delete(name, options or DeleteOptions())

    async def until_namespace_gone(self, name: str) -> None:
        namespaces = self.client.resource("v1", "namespaces")
        listing = await namespaces.list()
        if name not in map(name_of, listing["items"]):
            return
        since = listing["metadata"]["resourceVersion"]
        async with await namespaces.watch(ListOptions(resource_version=since, timeout_seconds=PATIENCE)) as watch:
            async for event in watch:
                if event.type == "DELETED" and name_of(event.object) == name:
                    return
        raise AssertionError(f"{name} is still there: {await namespaces.get(name)}")


@asynccontextmanager
async def controlled_server(folder: Path) -> AsyncIterator[ControlledServer]:
    """No controller runs yet."""
    async with whole_server(folder, authorization_mode="RBAC") as server:
        yield ControlledServer(server.client(in_process=True))


@asynccontextmanager
async def managed(server: ControlledServer, *choice: str) -> AsyncIterator[None]:
    """The server with these controllers."""
    manager = ControllerManager(
        server.client,
        enabled(choice),
        registry=CollectorRegistry(),
        config=server.config,
        client_as=server.client_as,
    )
    async with running(manager):
        yield


@asynccontextmanager
async def running(manager: ControllerManager) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(manager.run())
    try:
        yield task
    finally:
        await cancelled(task)
