"""A storage that returns a Status of a failure, instead of raising an error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from pilothouse.apiserver import (
    SCHEMALESS_PATCHES,
    UNSTRUCTURED,
    AdmissionChain,
    APIGroup,
    APIVersion,
    ChainConfig,
    GenericConfig,
    GroupVersion,
    Installer,
    Json,
    ListenEndpoint,
    Names,
    ServedResource,
    Server,
    SqliteStore,
    UnstructuredDecoder,
    handler_chain,
    install_api_group,
    not_found,
)
from pilothouse.apiserver.registry.operations import Deleted, Updated

V1 = GroupVersion("wardle.example.com", "v1")
KIND = V1.kind("Flunder")
PATH = f"/apis/{V1}/flunders"


class FailingStorage:
    """Returns the same Status for every request."""

    status: Json

    async def get(self, *_: object) -> Json:
        return self.status

    async def create(self, *_: object, **__: object) -> Json:
        return self.status

    async def update(self, *_: object) -> Updated:
        return Updated(self.status, created=True)

    async def delete(self, *_: object, **__: object) -> Deleted:
        return Deleted(self.status, immediately=False)


@pytest.fixture
def storage() -> FailingStorage:
    return FailingStorage()


@pytest.fixture
async def client(tmp_path: Path, storage: FailingStorage) -> AsyncIterator[aiohttp.ClientSession]:
    store = await SqliteStore.open(tmp_path / "store")
    config = GenericConfig(store)
    generic = config.new_server("wardle", not_found(config.lifecycle.mux_and_discovery_complete))
    flunders = ServedResource(
        Names("flunders", KIND.kind),
        namespaced=False,
        storage=storage,
        kind=KIND,
        decoder=UnstructuredDecoder(KIND),
        storage_version=V1,
        serializers=UNSTRUCTURED,
        patch_types=SCHEMALESS_PATCHES,
    )
    group = APIGroup(V1.group, [APIVersion(V1, [flunders])])
    install_api_group(generic, group, Installer(AdmissionChain([]), config.authorizer))
    chain = handler_chain(generic.handler, ChainConfig(config.authenticator, config.authorizer))
    server = Server(chain, [ListenEndpoint("127.0.0.1", 0)])
    await server.start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        yield session
    await server.shutdown()
    await store.close()


@pytest.mark.parametrize(("code", "answered"), [(500, 500), (409, 409), (0, 500), (None, 500), (201, 400)])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_the_http_code_is_that_of_the_failure(
    client: aiohttp.ClientSession, storage: FailingStorage, method: str, code: int | None, answered: int
) -> None:
    storage.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "broken"}
    if code is not None:
        storage.status["code"] = code
    flunder = {"apiVersion": str(V1), "kind": KIND.kind, "metadata": {"name": "a", "resourceVersion": ""}}
    body = None if method in ("GET", "DELETE") else flunder
    async with client.request(method, PATH if method == "POST" else f"{PATH}/a", json=body) as answer:
        found = await answer.json()
    assert (answer.status, found["code"], found["message"]) == (answered, answered, "broken")


async def test_a_success_keeps_the_code_of_its_verb(client: aiohttp.ClientSession, storage: FailingStorage) -> None:
    storage.status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    flunder = {"apiVersion": str(V1), "kind": KIND.kind, "metadata": {"name": "a"}}
    async with client.post(PATH, json=flunder) as answer:
        assert (answer.status, (await answer.json())["status"]) == (201, "Success")
