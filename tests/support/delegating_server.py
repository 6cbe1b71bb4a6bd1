"""A server over real TLS that leaves authentication and authorization to a cluster, and says who asked it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from tls_backends import Pki

from pilothouse.apiserver import (
    ChainConfig,
    KeyPair,
    Request,
    Response,
    SecureServing,
    SecureServingInfo,
    Server,
    TlsFiles,
    handler_chain,
)
from pilothouse.apiserver.authn.user import user_info
from pilothouse.builder.delegated_auth import DelegatedAuthentication, delegated_authentication, delegated_authorizer
from pilothouse.client import Client, ClientConfig
from pilothouse.client.config.model import TLSConfig
from pilothouse.client.rest.http_transport import HttpTransport
from pilothouse.client.rest.transport import HttpRequest, HttpResponse, Transport
from pilothouse.errors import ConnectionRefused
from pilothouse.testing import API

NAME = "system:serviceaccount:wardle:api"
"""Who the server is to the cluster."""


class Line:
    """What the server sends to the cluster; it can be cut."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.sent: list[HttpRequest] = []
        self.is_cut = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent.append(request)
        if self.is_cut:
            raise ConnectionRefused("dial tcp: connection refused")
        return await self._transport.send(request)

    async def close(self) -> None:
        await self._transport.close()

    def reviews(self, resource: str) -> list[Any]:
        """The specs that were asked about."""
        sent = [each for each in self.sent if each.method == "POST" and each.target.endswith(resource)]
        return [orjson.loads(each.body)["spec"] for each in sent]


@dataclass(frozen=True)
class DelegatingServer:
    port: int
    pki: Pki
    authentication: DelegatedAuthentication
    line: Line

    async def ask(self, path: str = "/who", pair: KeyPair | None = None, token: str = "", **headers: str) -> Answer:
        tls = TLSConfig(ca_file=self.pki.ca_file, server_name="localhost")
        if pair is not None:
            tls = TLSConfig(
                ca_file=self.pki.ca_file, server_name="localhost", cert_file=pair.cert_file, key_file=pair.key_file
            )
        transport = HttpTransport(ClientConfig(host=f"https://localhost:{self.port}", tls=tls, token=token))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            response = await transport.send(HttpRequest("GET", path, {"accept": "application/json", **named}))
            return Answer(response.status, await response.read())
        finally:
            await transport.close()


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = field(repr=False)

    @property
    def user(self) -> str:
        return str(orjson.loads(self.body)["user"].get("username"))


async def _who(request: Request) -> Response:
    names = sorted(name.decode() for name, _ in request.headers)
    return Response(200, orjson.dumps({"user": user_info(request.user), "headers": names}))


@asynccontextmanager
async def delegating_server(api: API, folder: Path, *, name: str = NAME) -> AsyncIterator[DelegatingServer]:
    pki = Pki.make(folder / "pki")
    line = Line(HttpTransport(api.as_user(name).config()))
    client = Client(line)
    authentication = delegated_authentication(client, folder / "trust")
    await authentication.start()
    chain = ChainConfig(authentication.authenticator, delegated_authorizer(client))
    files = TlsFiles(pki.server("localhost"), client_cas=authentication.client_cas)
    secure = SecureServing(SecureServingInfo(files, "127.0.0.1", 0), poll_seconds=0)
    server = Server(handler_chain(_who, chain), [secure.endpoint])
    await server.start()
    try:
        yield DelegatingServer(server.port, pki, authentication, line)
    finally:
        await server.abort()
        await authentication.stop()
        await client.close()


async def allow_delegation(client: Client, *, reader: bool = True, delegator: bool = True) -> None:
    """Gives the server its roles in the cluster."""
    subject = {"kind": "ServiceAccount", "namespace": "wardle", "name": "api"}
    rbac = "rbac.authorization.k8s.io"
    if reader:
        role = {"apiGroup": rbac, "kind": "Role", "name": "extension-apiserver-authentication-reader"}
        bindings = client.resource(f"{rbac}/v1", "rolebindings", namespace="kube-system")
        await bindings.create({"metadata": {"name": "wardle"}, "roleRef": role, "subjects": [subject]})
    if delegator:
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "system:auth-delegator"}
        bindings = client.resource(f"{rbac}/v1", "clusterrolebindings")
        await bindings.create({"metadata": {"name": "wardle"}, "roleRef": role, "subjects": [subject]})


async def allow_everybody_to_ask(client: Client) -> None:
    rbac = "rbac.authorization.k8s.io"
    rules = [{"nonResourceURLs": ["/who"], "verbs": ["get"]}]
    await client.resource(f"{rbac}/v1", "clusterroles").create({"metadata": {"name": "who"}, "rules": rules})
    groups = ("system:authenticated", "system:unauthenticated")
    subjects = [{"apiGroup": rbac, "kind": "Group", "name": group} for group in groups]
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "who"}
    bindings = client.resource(f"{rbac}/v1", "clusterrolebindings")
    await bindings.create({"metadata": {"name": "who"}, "roleRef": role, "subjects": subjects})
