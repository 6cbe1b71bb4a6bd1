"""A whole server put together from the public names of the generic server, and of nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilothouse.apiserver import (
    AGE,
    NAME,
    SCHEMALESS_PATCHES,
    UNSTRUCTURED,
    AdmissionAttributes,
    AdmissionChain,
    APIGroup,
    APIVersion,
    ChainConfig,
    Column,
    Errors,
    GenericAPIServer,
    GenericConfig,
    GroupVersion,
    HealthCheck,
    HookContext,
    Installer,
    Json,
    ListenEndpoint,
    Names,
    Operation,
    RegistryStore,
    Resource,
    RunConfig,
    Runner,
    ServedResource,
    Server,
    SqliteStore,
    Strategy,
    UnstructuredDecoder,
    handler_chain,
    install_api_group,
    install_group_list,
    not_found,
    required,
)
from pilothouse.client import Client, ClientConfig, connect
from pilothouse.errors import BadRequest, Forbidden, Invalid, NotFound

V1 = GroupVersion("wardle.example.com", "v1")
KIND = V1.kind("Flunder")


class FlunderStrategy(Strategy):
    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {}).setdefault("size", 1)

    def validate(self, obj: Json) -> Errors:
        yield from super().validate(obj)
        if not obj["spec"].get("colour"):
            yield required("spec.colour")


FLUNDERS = Resource(
    Names("flunders", KIND.kind, short=["fl"]),
    FlunderStrategy(),
    KIND.group,
    columns=[NAME, Column("Colour", lambda obj: obj["spec"]["colour"]), AGE],
)


class NobodyDeletes:
    name = "NobodyDeletes"

    def handles(self, operation: Operation) -> bool:
        return operation is Operation.DELETE

    async def validate(self, attributes: AdmissionAttributes) -> None:
        raise Forbidden(f"{attributes.name} stays")


async def is_well() -> None: ...


def served(registry: RegistryStore) -> ServedResource:
    return ServedResource(
        FLUNDERS.names,
        namespaced=FLUNDERS.namespaced,
        storage=registry,
        kind=KIND,
        decoder=UnstructuredDecoder(KIND),
        storage_version=KIND.group_version,
        default=FLUNDERS.strategy.default,
        columns=FLUNDERS.columns,
        serializers=UNSTRUCTURED,
        patch_types=SCHEMALESS_PATCHES,
        typed_items=True,
    )


def wardle(config: GenericConfig) -> GenericAPIServer:
    server = config.new_server("wardle", not_found(config.lifecycle.mux_and_discovery_complete))
    registry = RegistryStore(FLUNDERS, config.store)
    group = APIGroup(V1.group, [APIVersion(V1, [served(registry)])])
    install_api_group(server, group, Installer(AdmissionChain([NobodyDeletes()]), config.authorizer))
    install_group_list(server, [group])

    async def fill_cache(context: HookContext) -> None:
        await registry.start()
        await registry.wait_ready()

    server.add_post_start_hook("fill-cache", fill_cache)
    server.add_health_check(HealthCheck("wardle", is_well))
    server.add_drained(registry.stop)
    return server


@asynccontextmanager
async def running(config: GenericConfig) -> AsyncIterator[str]:
    chain = ChainConfig(config.authenticator, config.authorizer)
    prepared = wardle(config).prepare_run()
    server = Server(handler_chain(prepared.server.handler, chain), [ListenEndpoint("127.0.0.1", 0)])
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        run = Runner(prepared, RunConfig([server], chain.in_flight.wait)).run(stop, ready=ready.set)
        tasks.create_task(run)
        await ready.wait()
        yield f"http://127.0.0.1:{server.port}"
        stop.set()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    store = await SqliteStore.open(tmp_path / "store")
    async with running(GenericConfig(store)) as url, connect(ClientConfig(host=url)) as client:
        yield client
    await store.close()


def flunder(name: str, **spec: object) -> Json:
    return {"apiVersion": str(V1), "kind": KIND.kind, "metadata": {"name": name}, "spec": spec}


async def test_a_resource_is_kept_by_its_own_rules(client: Client) -> None:
    flunders = client.resource(str(V1), "flunders", namespace="default")
    created = await flunders.create(flunder("a", colour="red"))
    assert created["spec"] == {"colour": "red", "size": 1}
    with pytest.raises(Invalid, match=r"spec\.colour: Required value"):
        await flunders.create(flunder("b"))
    assert [item["metadata"]["name"] for item in (await flunders.list())["items"]] == ["a"]
    with pytest.raises(NotFound):
        await flunders.get("b")


async def test_fields_that_nobody_declared_are_kept_and_patched(client: Client) -> None:
    flunders = client.resource(str(V1), "flunders", namespace="default")
    await flunders.create(flunder("a", colour="red", odd={"x": 1}))
    patched = await flunders.patch("a", {"spec": {"odd": {"y": 2}}})
    assert patched["spec"]["odd"] == {"x": 1, "y": 2}


async def test_an_object_of_another_kind_is_refused(client: Client) -> None:
    flunders = client.resource(str(V1), "flunders", namespace="default")
    with pytest.raises(BadRequest, match="cannot be handled as a Flunder"):
        await flunders.create(flunder("a", colour="red") | {"kind": "Fischer"})
    with pytest.raises(BadRequest, match="Flunder"):
        await flunders.create(flunder("a", colour="red") | {"metadata": []})


async def test_admission_has_the_last_word(client: Client) -> None:
    flunders = client.resource(str(V1), "flunders", namespace="default")
    await flunders.create(flunder("a", colour="red"))
    with pytest.raises(Forbidden, match="a stays"):
        await flunders.delete("a")
