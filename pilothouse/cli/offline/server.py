"""The whole server chain in this event loop, on a temporary store and without a socket. No controller runs in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

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
    def is_well(self) -> bool:
        return self.status < 300

    @property
    def is_there_already(self) -> bool:
        return self.status == 409 and self.body.get("reason") == "AlreadyExists"


class Caller:
    """Makes requests as one user."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(
        self, method: str, path: str, query: str = "", data: bytes = b"", *, media: bytes = _JSON, accept: bytes = _JSON
    ) -> CallAnswer:
        """Return the answer, whatever its status."""

        async def body(limit: int) -> bytes:
            return data

        headers: Headers = [(b"content-type", media), (b"accept", accept), (b"user-agent", b"pilothouse-validate")]
        response = await self._handler(Request(method, path, query, headers, body))
        assert isinstance(response.body, bytes)
        return CallAnswer(response.status, _parsed(response.body), tuple(_warnings(response.headers)))


class OfflineServer:
    def __init__(self, api: Handler, chain: ChainConfig) -> None:
        self._api, self._chain = api, chain
        self.admin = Caller(loopback_handler_chain(api, chain))

    def as_user(self, user: User) -> Caller:
        """Return a caller with the rights that this user has."""
        return Caller(loopback_handler_chain(self._api, self._chain, _authenticated(user)))

    def called(self, user: User) -> Caller:
        """Return a caller who is known as this user, and may do everything that admission lets through."""
        chain = replace(self._chain, authorizer=AlwaysAllow())
        return Caller(loopback_handler_chain(self._api, chain, _authenticated(user)))


@asynccontextmanager
async def offline_server() -> AsyncIterator[OfflineServer]:
    """Run the server for as long as the block lasts; it is ready when the block begins."""
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
    """Return the texts of the Warning headers, as `299 - "text"` has them."""
    values = (value.decode("utf-8", "replace") for name, value in headers if name == b"warning")
    return [value.partition(' "')[2].removesuffix('"').replace('\\"', '"') for value in values]
