"""A whole server in this process, on a real embedded store: requests go through every filter, but no socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from pilothouse.aggregator.proxy.handler import ProxyConfig
from pilothouse.aggregator.server import Aggregator, AggregatorConfig
from pilothouse.apiserver.authn.bearer import BearerAuthenticator
from pilothouse.apiserver.authn.tokens import StaticTokens
from pilothouse.apiserver.authn.union import UnionAuthenticator
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.filters.chain import ChainConfig, handler_chain
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.apiserver.server.health import READYZ, run_checks
from pilothouse.apiserver.server.hooks import HookContext, run_post_start_hooks
from pilothouse.apiserver.server.not_found import not_found
from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.apiserver.webhook.service_resolver import NoServices, ServiceResolver
from pilothouse.controlplane.loopback import Loopback
from pilothouse.controlplane.options.admission import DEFAULT_ON
from pilothouse.controlplane.priorities import API_VERSION_PRIORITIES
from pilothouse.extensions.server import ExtensionsServer
from pilothouse.kube.bootstrap.address import PublicAddress
from pilothouse.kube.core.services.lister import ServiceLister
from pilothouse.kube.server import KubeConfig, KubeServer
from pilothouse.kube.serviceaccount.config import ServiceAccountConfig
from pilothouse.machinery.objects import Json

TOKEN = "in-process"
ADMISSION_PLUGINS = DEFAULT_ON - {"ServiceAccount"}
"""No controller makes the accounts that pods run as."""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Json]:
        """The frames of a watch that has ended."""
        return [orjson.loads(line) for line in self.body.splitlines()]


Body: TypeAlias = Json | list[Any] | bytes | str | None


class InProcessServer:
    def __init__(self, handler: Handler, generic: GenericAPIServer) -> None:
        self._handler = handler
        self.generic = generic

    @property
    def handler(self) -> Handler:
        """The whole chain, for tests that put a socket before it."""
        return self._handler

    async def __call__(self, method: str, target: str, body: Body = None, **asked: str) -> Answer:
        """`asked` is as in `open`."""
        response = await self.open(method, target, body, **asked)
        whole = response.body if isinstance(response.body, bytes) else b"".join([c async for c in response.body])
        named = {name.decode(): value.decode() for name, value in response.headers}
        return Answer(response.status, named, whole)

    async def open(
        self,
        method: str,
        target: str,
        body: Body = None,
        *,
        media: str = "application/json",
        accept: str = "application/json",
        **headers: str,
    ) -> Response:
        """The answer as it is, for streams."""
        path, _, query = target.partition("?")
        sent = {"authorization": f"Bearer {TOKEN}", "content-type": media, "accept": accept, **headers}
        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in sent.items()]
        data = _bytes(body)

        async def read_body(limit: int) -> bytes:
            return data

        return await self._handler(Request(method, path, query, pairs, read_body))

    async def create(self, name: str, namespace: str = "default", **fields: Any) -> Json:
        """A ConfigMap; `metadata` among the fields is merged into its metadata."""
        metadata = {"name": name, **fields.pop("metadata", {})}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}
        answer = await self("POST", f"/api/v1/namespaces/{namespace}/configmaps", obj)
        assert answer.status == 201, answer.body
        created: Json = answer.json
        return created


def _bytes(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return b"" if body is None else orjson.dumps(body)


@asynccontextmanager
async def in_process_server(
    folder: Path,
    *,
    runtime_config: Json | None = None,
    admission_plugins: frozenset[str] = ADMISSION_PLUGINS,
    extensions: bool = False,
    aggregator: bool = False,
    services: ServiceResolver | None = None,
) -> AsyncIterator[InProcessServer]:
    """Reached, as far as it knows, at 192.0.2.2:6443. With `extensions` it serves custom resources, too, and with
    `aggregator` it is the whole chain."""
    store = await SqliteStore.open(folder)
    resources = parse_runtime_config(runtime_config or {})
    generic = GenericConfig(
        store, admission_plugins=admission_plugins, resources=resources, services=services or NoServices()
    )
    nobody = not_found(generic.lifecycle.mux_and_discovery_complete)
    below = ExtensionsServer(generic, delegate=nobody) if extensions or aggregator else None
    loopback = Loopback(ChainConfig(UnionAuthenticator([]), AlwaysAllow()))
    client = loopback.client if aggregator else None
    kube = KubeServer(_config(generic, folder), delegate=below.generic if below else nobody, client=client)
    if below is not None:
        below.admission.plugins = kube.admission.plugins
    outermost = _aggregator(generic, kube, below, loopback).generic if below and aggregator else kube.generic
    generic.lifecycle.mux_and_discovery_complete.signal()
    context = HookContext()
    await run_post_start_hooks(outermost.post_start_hooks(), context)
    await _until_ready(outermost)
    generic.lifecycle.has_been_ready.signal()
    users = BearerAuthenticator(StaticTokens({TOKEN: User("tester", groups=(SYSTEM_PRIVILEGED_GROUP,))}))
    try:
        yield InProcessServer(handler_chain(outermost, ChainConfig(users, AlwaysAllow())), outermost)
    finally:
        await context.stop()
        await outermost.destroy()
        await store.close()


async def _until_ready(server: GenericAPIServer) -> None:
    while (await run_checks(READYZ, server.health_checks(), ())).failures:  # noqa: ASYNC110  # as the server itself
        await asyncio.sleep(0.005)


def _aggregator(
    generic: GenericConfig, kube: KubeServer, extensions: ExtensionsServer, loopback: Loopback
) -> Aggregator:
    config = AggregatorConfig(
        generic,
        client=loopback.client,
        definitions=extensions.definitions if extensions.crd_api_enabled else None,
        admission=kube.admission,
        priorities=API_VERSION_PRIORITIES,
        proxy=ProxyConfig(generic.services),
        services=ServiceLister(kube.registries),
    )
    aggregator = Aggregator(config, delegate=kube.generic)
    loopback.bind(aggregator.generic)
    return aggregator


def _config(generic: GenericConfig, folder: Path) -> KubeConfig:
    """Tokens of service accounts can be issued once a test has put a key into the folder."""
    service_accounts = ServiceAccountConfig(signing_key_file=folder / "sa.key")
    return KubeConfig(generic, address=PublicAddress("192.0.2.2", 6443), service_accounts=service_accounts)
