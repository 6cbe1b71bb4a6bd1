"""The whole server chain in this event loop, on a temporary store, without sockets and without controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.filters.chain import ChainConfig, loopback_handler_chain
from pilothouse.apiserver.http import Handler, Headers, Request
from pilothouse.apiserver.server.run import RunConfig, Runner
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.config import new_config
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.run import prepare
from pilothouse.controlplane.serving import Certificates
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.controlplane.options.completion import CompletedOptions

_FLAGS = ("--authorization-mode=RBAC", "--controllers=-*", "--enable-priority-and-fairness=false")
_JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class CallAnswer:
    status: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def already_exists(self) -> bool:
        return self.status == 409 and self.body.get("reason") == "AlreadyExists"


@dataclass(frozen=True, slots=True)
class Caller:
    """Sends requests as one user."""

    handler: Handler

    async def __call__(
        self, method: str, path: str, query: str = "", data: bytes = b"", *, media: bytes = _JSON, accept: bytes = _JSON
    ) -> CallAnswer:
        """Return the answer. Error statuses do not raise."""

        async def body(limit: int) -> bytes:
            return data

        headers: Headers = [(b"content-type", media), (b"accept", accept), (b"user-agent", b"pilothouse-validate")]
        response = await self.handler(Request(method, path, query, headers, body))
        assert isinstance(response.body, bytes)
        return CallAnswer(response.status, _parsed(response.body), tuple(_warnings(response.headers)))


class OfflineServer:
    def __init__(self, api: Handler, chain: ChainConfig) -> None:
        self._api, self._chain = api, chain
        self.admin = Caller(loopback_handler_chain(api, chain))

    def as_user(self, user: User) -> Caller:
        """Return a caller with the permissions of the user."""
        return Caller(loopback_handler_chain(self._api, self._chain, _authenticated(user)))

    def as_privileged_user(self, user: User) -> Caller:
        """Return a caller with the user's identity and all permissions; only admission can reject its requests."""
        chain = replace(self._chain, authorizer=AlwaysAllow())
        return Caller(loopback_handler_chain(self._api, chain, _authenticated(user)))


@asynccontextmanager
async def offline_server() -> AsyncIterator[OfflineServer]:
    """Run the server for the duration of the block. The server is ready when the block begins."""
    with TemporaryDirectory(prefix="pilothouse-") as folder:
        options = complete(Options.parse([f"--data-dir={folder}", "--bind-address=127.0.0.1", *_FLAGS])).validate()
        Certificates.ensure(options)
        store = await SqliteStore.open(Path(folder) / "store", compaction_interval=0)
        try:
            async with _running(options, store) as server:
                yield server
        finally:
            await store.close()


@asynccontextmanager
async def _running(options: CompletedOptions, store: SqliteStore) -> AsyncIterator[OfflineServer]:
    config = new_config(options, store)
    prepared = prepare(config)
    stop, ready = asyncio.Event(), asyncio.Event()
    run_config = RunConfig((), config.chain.in_flight.drain, options.generic, dict(config.background))
    running = asyncio.create_task(Runner(prepared, run_config).run(stop, ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield OfflineServer(prepared.server.handler, config.chain)
    finally:
        waiting.cancel()
        stop.set()
        await running


def _authenticated(user: User) -> User:
    return replace(user, groups=tuple(dict.fromkeys((*user.groups, ALL_AUTHENTICATED))))


def _parsed(body: bytes) -> Any:
    return orjson.loads(body) if body[:1] in (b"{", b"[") else {"message": body.decode("utf-8", "replace")}


def _warnings(headers: Headers) -> list[str]:
    """Return the texts of the Warning headers (`299 - "text"`)."""
    values = (value.decode("utf-8", "replace") for name, value in headers if name == b"warning")
    return [value.partition(' "')[2].removesuffix('"').replace('\\"', '"') for value in values]


_DISCOVERY = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class KindPath:
    """REST path of a kind. `base` is the path of the group version."""

    base: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str) -> str:
        return (
            f"{self.base}/namespaces/{quote(namespace)}/{self.plural}"
            if self.namespaced
            else f"{self.base}/{self.plural}"
        )

    def item(self, namespace: str, name: str) -> str:
        return f"{self.collection(namespace)}/{quote(name)}"


class KindPaths:
    """REST paths of the server's kinds: built-in kinds and added definitions."""

    _paths: dict[tuple[str, str], KindPath]  # by apiVersion and kind

    def __init__(self) -> None:
        self._paths = {}

    async def discover(self, call: Caller) -> None:
        """Add the kinds that discovery lists."""
        for root in ("/api", "/apis"):
            for group in (await call("GET", root, accept=_DISCOVERY)).body["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    api_version = f"{name}/{version['version']}" if name else version["version"]
                    for resource in version.get("resources", ()):
                        kind = resource["responseKind"].get("kind") or ""
                        path = KindPath(
                            f"{root}/{api_version}", resource["resource"], resource["scope"] == "Namespaced"
                        )
                        if "create" in resource["verbs"] or "update" in resource["verbs"]:
                            self._paths.setdefault((api_version, kind), path)

    def add_definition(self, definition: Json) -> None:
        """Add the kinds of a created CustomResourceDefinition."""
        spec = definition["spec"]
        for version in spec["versions"]:
            if version["served"]:
                api_version = f"{spec['group']}/{version['name']}"
                path = KindPath(f"/apis/{api_version}", spec["names"]["plural"], spec["scope"] == "Namespaced")
                self._paths[api_version, spec["names"]["kind"]] = path

    def get(self, obj: Json) -> KindPath | None:
        return self._paths.get((obj["apiVersion"], obj["kind"]))

    def versions_of(self, kind: str) -> list[str]:
        """Return the group versions that have a kind of this name."""
        return sorted(api_version for api_version, known in self._paths if known == kind)
