"""The loopback client on the server's own chain, in one process and without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from patience import PATIENCE

from pilothouse.apiserver import RunConfig, Runner, handler_chain
from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import loopback
from pilothouse.controlplane.config import new_config
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.run import prepare
from pilothouse.controlplane.serving import Certificates
from pilothouse.controlplane.storage import open_store
from pilothouse.machinery.errors import AlreadyExists, NotFound, Unauthorized
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import name_of

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[AsgiApp]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('secret,tester,1,"system:masters"\n')
    flags = [f"--data-dir={tmp_path / 'data'}", f"--token-auth-file={tokens}", "--controllers=-*"]
    options = complete(Options.parse(flags))
    Certificates.ensure(options)
    store = await open_store(options.etcd, Path(options.pilothouse.data_dir), timeout=PATIENCE)
    config = new_config(options, store)
    prepared = prepare(config)
    stop, ready = asyncio.Event(), asyncio.Event()
    running = asyncio.ensure_future(
        Runner(prepared, RunConfig(serving=[], drain=config.chain.in_flight.wait)).run(stop, ready=ready.set)
    )
    await ready.wait()
    yield AsgiApp(handler_chain(prepared.server.handler, config.chain))
    stop.set()
    await running
    await store.close()


@pytest.fixture
async def client(app: AsgiApp) -> Client:
    connected = loopback(app, headers={"authorization": "Bearer secret"})
    await connected.resource("v1", "namespaces").create({"metadata": {"name": "here"}})
    return connected


async def test_objects_are_written_and_read_without_a_socket(client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="here")
    created = await maps.create({"metadata": {"name": "a"}, "data": {"x": "1"}})
    with pytest.raises(AlreadyExists):
        await maps.create({"metadata": {"name": "a"}})
    assert await maps.get("a") == created
    assert (await maps.list())["items"] == [created]
    await maps.delete("a")
    with pytest.raises(NotFound):
        await maps.get("a")


async def test_the_loopback_client_must_say_who_it_is(app: AsgiApp) -> None:
    with pytest.raises(Unauthorized):
        await loopback(app, headers={"authorization": "Bearer wrong"}).get_json("/api/v1/namespaces")


async def test_an_informer_follows_the_server_in_process(client: Client) -> None:
    maps = client.resource("v1", "configmaps", namespace="here")
    await maps.create({"metadata": {"name": "a"}})
    seen: asyncio.Queue[str] = asyncio.Queue()
    factory = SharedInformerFactory(client, namespace="here")
    informer = factory.for_resource(CONFIG_MAPS)
    informer.add_event_handler(ResourceEventHandlerFuncs(add=lambda obj: seen.put_nowait(name_of(obj))))
    async with asyncio.timeout(PATIENCE), factory:
        await factory.wait_for_cache_sync()
        assert await seen.get() == "a"
        await maps.create({"metadata": {"name": "b"}})
        assert await seen.get() == "b"
        assert informer.indexer.get_by_key("here/b") == await maps.get("b")
