"""Servers over real TLS with certificates of their own, for whatever connects to a Service."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.apiserver import Handler, KeyPair, ListenEndpoint, Server
from pilothouse.apiserver.webhook.service_resolver import ServiceAddress, ServiceUnresolved
from pilothouse.controlplane.certificates.ensure import ServingNames
from pilothouse.controlplane.certificates.issue import Authority, Profile
from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

SERVER_NAME = "web.default.svc"


@dataclass(frozen=True, slots=True)
class Pki:
    """A CA in a folder, and what it issues."""

    folder: Path
    authority: Authority

    @classmethod
    def make(cls, folder: Path, name: str = "backends") -> Pki:
        folder.mkdir(exist_ok=True, parents=True)
        return cls(folder, keep_authority(name, folder / "ca.crt", folder / "ca.key"))

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.ca_file.read_bytes()).decode()

    def server(self, *names: str) -> KeyPair:
        return self._issue(Profile("server", names=ServingNames(frozenset(names), frozenset())), "server")

    def client(self, name: str = "front-proxy-client", file: str = "client") -> KeyPair:
        return self._issue(Profile(name), file)

    def _issue(self, profile: Profile, file: str) -> KeyPair:
        pair = KeyPair(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        keep_certificate(profile, self.authority, pair.cert_file, pair.key_file)
        return pair


@asynccontextmanager
async def backend(
    handler: Handler,
    pki: Pki,
    *,
    names: Sequence[str] = (SERVER_NAME,),
    client_ca: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    protocols: Sequence[str] = ("h2", "http/1.1"),
) -> AsyncIterator[Server]:
    pair = pki.server(*names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_file, pair.key_file)
    context.set_alpn_protocols(list(protocols))
    if client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(client_ca)
    server = Server(handler, [ListenEndpoint(host, port, tls=lambda _: context)])
    await server.start()
    try:
        yield server
    finally:
        await server.abort()


def own_address() -> str:
    """An address of this machine that is not a loopback one; empty where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            return ""
    return "" if address.startswith(("127.", "0.")) else address


def external_service(name: str) -> dict[str, Any]:
    """A Service that leads to this machine, to whatever port it is asked for."""
    return {"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}}


class FixedServices:
    """A ServiceResolver that knows one address, or none."""

    def __init__(self, port: int | None) -> None:
        self.port = port

    async def resolve(self, namespace: str, name: str, port: int) -> ServiceAddress:
        if self.port is None:
            raise ServiceUnresolved(f'service "{name}" not found')
        return ServiceAddress("127.0.0.1", self.port)


def api_service(*, available: bool = True, **spec: Any) -> dict[str, Any]:
    """v1.example.com, behind the Service web in default."""
    condition = {"type": "Available", "status": "True" if available else "False"}
    whole = {
        "group": "example.com",
        "version": "v1",
        "service": {"namespace": "default", "name": "web", "port": 443},
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        **spec,
    }
    return {"metadata": {"name": "v1.example.com"}, "spec": whole, "status": {"conditions": [condition]}}
