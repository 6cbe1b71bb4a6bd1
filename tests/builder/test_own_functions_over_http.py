"""An author's objects as clients see them: the endpoints of a custom resource over the author's functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from shelves import Shelf, served

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.authn.tokens import INSECURE_SUPERUSER, AlwaysUser
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.endpoints.api_groups import install_api_group
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.filters.chain import ChainConfig, handler_chain
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.extensions.customresources.conversion import on_read
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.strategy import CustomResourceStrategy
from pilothouse.extensions.customresources.version_endpoints import api_versions
from pilothouse.machinery.objects import Json

GROUP = "library.example.com"
NAMES = {"plural": "books", "kind": "Book", "singular": "book", "listKind": "BookList"}
SPEC = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "default": 100}},
}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": SPEC, "status": {"type": "object", "properties": {"lent": {"type": "boolean"}}}},
        }
    },
    "additionalPrinterColumns": [{"name": "Title", "type": "string", "jsonPath": ".spec.title"}],
}
BOOKS = CustomResource(
    {
        "spec": {"group": GROUP, "scope": "Namespaced", "names": NAMES, "versions": [VERSION]},
        "status": {"acceptedNames": NAMES},
    }
)
COLLECTION = f"/apis/{GROUP}/v1/namespaces/default/books"

Send = Callable[..., Awaitable[tuple[int, Any]]]


@asynccontextmanager
async def library(folder: Path, shelf: object) -> AsyncIterator[Send]:
    strategy = CustomResourceStrategy(BOOKS, BOOKS.storage_version)
    resource = Resource(BOOKS.names, strategy, group=GROUP, version="v1")
    async with served(folder, shelf, resource=resource, on_read=on_read(BOOKS)) as books:
        [version] = api_versions(BOOKS, books.own.registry)
        main, *rest = version.resources
        assert isinstance(main.storage, RegistryStore)
        main = replace(main, storage=books.own.storage_of(main.storage))
        server = GenericAPIServer("library", _nobody)
        group = APIGroup(GROUP, [replace(version, resources=[main, *rest])])
        install_api_group(server, group, Installer(AdmissionChain([]), AlwaysAllow()))
        handler = handler_chain(server.handler, ChainConfig(AlwaysUser(INSECURE_SUPERUSER), AlwaysAllow()))

        async def send(
            method: str, path: str, body: Json | None = None, *, accept: str = "", content: str = "application/json"
        ) -> tuple[int, Any]:
            async def read(limit: int) -> bytes:
                return b"" if body is None else orjson.dumps(body)

            headers = [(b"accept", (accept or "application/json").encode()), (b"content-type", content.encode())]
            path, _, query = path.partition("?")
            answer = await handler(Request(method, path, query, headers, read))
            return answer.status, await _read(answer)

        yield send


async def _nobody(request: Request) -> Response:
    return Response(404)


async def _read(answer: Response) -> Any:
    """The object, or the events of a watch that ends."""
    if isinstance(answer.body, bytes):
        return orjson.loads(answer.body)
    whole = b"".join([part async for part in answer.body])
    return [orjson.loads(line) for line in whole.splitlines()]


def book(name: str, **spec: object) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Book", "metadata": {"name": name}, "spec": spec}


async def test_a_custom_resource_over_an_authors_functions(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with library(tmp_path, shelf) as send:
        code, listed = await send("GET", COLLECTION)
        assert (code, listed["kind"]) == (200, "BookList")
        assert [item["spec"] for item in listed["items"]] == [{"title": "Emma", "pages": 100}]
        code, created = await send("POST", COLLECTION, book("dracula", title="Dracula"))
        assert (code, created["spec"]) == (201, {"title": "Dracula", "pages": 100})
        assert created["metadata"]["generation"] == 1
        assert shelf.rows["default", "dracula"]["spec"] == {"title": "Dracula", "pages": 100}
        code, refused = await send("POST", COLLECTION, book("sanditon", title=7))
        assert (code, refused["reason"]) == (422, "Invalid")
        as_table = "application/json;as=Table;g=meta.k8s.io;v=v1"
        code, table = await send("GET", COLLECTION, accept=as_table)
        assert [row["cells"] for row in table["rows"]] == [["dracula", "Dracula"], ["emma", "Emma"]]


async def test_server_side_apply_creates_and_changes_what_the_author_has(tmp_path: Path) -> None:
    shelf = Shelf()
    async with library(tmp_path, shelf) as send:
        path, content = f"{COLLECTION}/emma?fieldManager=me", "application/apply-patch+yaml"
        code, _ = await send("PATCH", path, book("emma", title="Emma"), content=content)
        assert code == 201
        code, applied = await send("PATCH", path, book("emma", title="Persuasion"), content=content)
        assert (code, applied["metadata"]["generation"]) == (200, 2)
        assert applied["metadata"]["managedFields"][0]["manager"] == "me"
        assert shelf.rows["default", "emma"]["spec"]["title"] == "Persuasion"
        _, found = await send("GET", f"{COLLECTION}/emma")
        assert found == applied
        other = f"{COLLECTION}/emma?fieldManager=other"
        code, refused = await send("PATCH", other, book("emma", title="Sanditon"), content=content)
        assert (code, refused["reason"]) == (409, "Conflict")


async def test_the_status_is_read_and_written_by_the_author_too(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with library(tmp_path, shelf) as send:
        path, content = f"{COLLECTION}/emma/status", "application/merge-patch+json"
        code, changed = await send("PATCH", path, {"status": {"lent": True}}, content=content)
        assert (code, changed["status"], changed["metadata"]["generation"]) == (200, {"lent": True}, 1)
        assert shelf.rows["default", "emma"]["status"] == {"lent": True}
        shelf.rows["default", "emma"]["status"] = {"lent": False}
        _, found = await send("GET", path)
        assert found["status"] == {"lent": False}


async def test_a_watch_over_http_begins_with_what_there_is(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.put("emma", "Emma")
    async with library(tmp_path, shelf) as send:
        streamed = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        code, events = await send("GET", f"{COLLECTION}?{streamed}&timeoutSeconds=1")
        assert code == 200
        assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]


async def test_a_read_only_resource_refuses_writes(tmp_path: Path) -> None:
    class ReadOnly:
        async def list(self, namespace: str) -> list[Json]:
            return [{"metadata": {"name": "emma", "namespace": "default"}, "spec": {"title": "Emma"}}]

    async with library(tmp_path, ReadOnly()) as send:
        code, found = await send("GET", f"{COLLECTION}/emma")
        assert (code, found["spec"]["title"]) == (200, "Emma")
        assert (await send("POST", COLLECTION, book("dracula")))[0] == 405
        assert (await send("DELETE", f"{COLLECTION}/emma"))[0] == 405
        assert (await send("PATCH", f"{COLLECTION}/emma", {}, content="application/merge-patch+json"))[0] == 405
