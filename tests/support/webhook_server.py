"""A webhook over real TLS, with a CA of its own: what it answers is a function from the review that came."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from certificates_fixture import TestCA

from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceUnresolved

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebhookServer:
    """`answer` may be replaced while it runs."""

    def __init__(self, ca: TestCA, answer: Answer) -> None:
        self.ca = ca
        self.answer = answer
        self.port = 0
        self.calls = 0
        self.peers: set[Any] = set()
        """The client's ends of the connections that were used."""

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.ca.certificate).decode()

    def by_url(self, path: str = "/convert") -> dict[str, Any]:
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca_bundle}

    def by_service(self, name: str = "hook", path: str = "/convert", port: int = 443) -> dict[str, Any]:
        service = {"namespace": "default", "name": name, "path": path, "port": port}
        return {"service": service, "caBundle": self.ca_bundle}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        return await self.answer(request)


class FixedResolver:
    """Knows the services that it was told."""

    def __init__(self) -> None:
        self.services: dict[tuple[str, str, int], ServiceAddress] = {}

    def add(self, name: str, port: int) -> None:
        self.services["default", name, 443] = ServiceAddress("127.0.0.1", port)

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        if (namespace, name, port) not in self.services:
            raise ServiceUnresolved(f'service "{name}" not found')
        return self.services[namespace, name, port]


@asynccontextmanager
async def webhook_server(answer: Answer, *names: str, client_ca: TestCA | None = None) -> AsyncIterator[WebhookServer]:
    """Its certificate is for 127.0.0.1 and for these names. With a CA for clients, they must show certificates."""
    server = WebhookServer(TestCA(), answer)
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_server_context(server.ca, names, client_ca))
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def _server_context(ca: TestCA, names: tuple[str, ...], client_ca: TestCA | None) -> ssl.SSLContext:
    pair = ca.issue("webhook", *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if client_ca is not None:
        context.load_verify_locations(cadata=client_ca.certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "cert"), Path(folder, "key")
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    return context
