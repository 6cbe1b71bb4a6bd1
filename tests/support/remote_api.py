"""A real API server with custom resources behind a real TLS socket, in a thread of its own: an APIService names it."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from custom_resources import definition, install, version
from patience import PATIENCE
from tls_backends import Pki, backend
from whole_server import whole_server

from pilothouse.apiserver import Handler, Request, Response
from pilothouse.testing import API

GROUP, SERVICE, NAMESPACE = "remote.example.com", "remote", "default"

_SCHEMA = {
    "type": "object",
    "description": "A gadget of another server.",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "description": "How big."}}}},
}


class RemoteAPI:
    """Serves gadgets from `start` to `stop`. It takes the word of whoever connects for who they are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pki = Pki.make(folder / "pki")
        self.port = 0
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def __enter__(self) -> RemoteAPI:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join()
            self._loop.close()

    def manifests(self) -> str:
        """A Service that leads here, and the APIService of the gadgets."""
        service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]}
        metadata = {"name": SERVICE, "namespace": NAMESPACE}
        spec = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 900,
            "versionPriority": 5,
            "service": {**metadata, "port": self.port},
            "caBundle": self.pki.ca_bundle,
        }
        items = [
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"v1.{GROUP}"},
                "spec": spec,
            },
        ]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    async def _serve(self) -> None:
        names = (f"{SERVICE}.{NAMESPACE}.svc",)
        async with whole_server(self._folder / "data") as server:
            await install(server, _gadgets())
            async with backend(_trusting(server), self.pki, names=names) as listening:
                self.port = listening.port
                self._started.set()
                await self._ending.wait()


def _gadgets() -> dict[str, object]:
    made = definition(version(schema=_SCHEMA), plural="gadgets", kind="Gadget", group=GROUP)
    return {**made, "metadata": {"name": f"gadgets.{GROUP}"}}


def _trusting(server: API) -> Handler:
    async def serve(request: Request) -> Response:
        token = (b"authorization", f"Bearer {server.token}".encode())
        assert server.handler is not None
        return await server.handler(replace(request, headers=[*request.headers, token]))

    return serve
