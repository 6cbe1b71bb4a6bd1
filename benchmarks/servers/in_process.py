"""A whole server in this process, made from flags as `pilothouse serve` makes it, but with no socket before it.

Requests are made by a user whose rights come from a RoleBinding, and who is nobody special to priority and fairness.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from pilothouse.apiserver.filters.chain import handler_chain
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.run import RunConfig, Runner
from pilothouse.controlplane.config import new_config
from pilothouse.controlplane.options.completion import CompletedOptions, complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.run import collect_garbage_from_now_on, prepare
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.storage import open_store
from pilothouse.kube.admission.plugins import existing_plugins

GUARDED = ("--authorization-mode=RBAC",)
"""As a server runs by default, and with RBAC."""
UNGUARDED = (
    "--authorization-mode=AlwaysAllow",
    "--enable-priority-and-fairness=false",
    f"--disable-admission-plugins={','.join(sorted(row.name for row in existing_plugins() if row.default_on))}",
)
NAMESPACE = "/api/v1/namespaces/default"
ROLE_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
_ADMIN, _USER = "admin", "user"
BINDING = {
    "metadata": {"name": "bench"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bench"}],
}


class InProcess:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def call(self, method: str, path: str, body: bytes = b"", *, query: str = "", token: str = _USER) -> Response:
        """Raises AssertionError for an answer that is no success."""

        async def read_body(limit: int) -> bytes:
            return body

        headers = [
            (b"host", b"127.0.0.1:6443"),
            (b"user-agent", b"h2load nghttp2/1.52.0"),
            (b"authorization", b"Bearer %b" % token.encode()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ]
        response = await self._handler(Request(method, path, query, headers, read_body, client=("127.0.0.1", 40000)))
        assert response.status in (200, 201), response.body
        return response


async def fill(folder: Path, objects: Iterable[tuple[str, bytes]]) -> None:
    """Writes objects into the store of a server that is not started yet."""
    options = _options(folder, ())
    store = await open_store(options.etcd, Path(options.pilothouse.data_dir), timeout=60.0)
    await asyncio.gather(*(store.create(key, value) for key, value in objects))
    await store.close()


@asynccontextmanager
async def in_process(folder: Path, *flags: str) -> AsyncIterator[InProcess]:
    options = _options(folder, flags)
    Certificates.ensure(options)
    store = await open_store(options.etcd, Path(options.pilothouse.data_dir), timeout=60.0)
    config = new_config(options, store)
    config.kube.address.listens_on(6443)
    prepared = prepare(config)
    stop, ready = asyncio.Event(), asyncio.Event()
    runner = Runner(prepared, RunConfig(serving=(), drain=lambda _: asyncio.sleep(0)))
    running = asyncio.create_task(runner.run(stop, ready=ready.set))
    try:
        await ready.wait()
        server = InProcess(handler_chain(prepared.server.handler, config.chain))
        await _bind(server)
        collect_garbage_from_now_on()
        yield server
    finally:
        stop.set()
        await running
        await store.close()


def _options(folder: Path, flags: tuple[str, ...]) -> CompletedOptions:
    folder.mkdir(exist_ok=True)
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{_ADMIN},admin,admin,"system:masters"\n{_USER},bench,bench\n')
    flags = (*flags, f"--data-dir={folder}/data", f"--token-auth-file={tokens}", "--secure-port=0")
    return complete(Options.parse(flags)).validate()


async def _bind(server: InProcess) -> None:
    """Waits until RBAC has heard of the binding, and the account that pods run as is there."""
    await server.call("POST", ROLE_BINDINGS, orjson.dumps(BINDING), token=_ADMIN)
    for path in (f"{NAMESPACE}/configmaps", f"{NAMESPACE}/serviceaccounts/default"):
        await _until_answered(server, path)


async def _until_answered(server: InProcess, path: str) -> None:
    for _ in range(200):
        try:
            await server.call("GET", path)
        except AssertionError:
            await asyncio.sleep(0.05)
        else:
            return
    raise SystemExit(f"GET {path} was not answered")
