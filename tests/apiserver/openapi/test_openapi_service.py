"""The service: documents are made when first asked for, once, and again only when something changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

import orjson
import pytest

from pilothouse.apiserver.openapi.route import STRING, Route, RouteContainer
from pilothouse.apiserver.openapi.service import Document, Lazy, OpenAPIService
from pilothouse.machinery.objects import Json


def route(path: str, description: str = "get it") -> Route:
    return Route(
        method="get",
        path=f"/{path}/",
        operation="getThing",
        description=description,
        responses={200: STRING},
        produces=("text/plain",),
    )


def container(path: str, description: str = "get it") -> RouteContainer:
    return RouteContainer(path, lambda: [route(path, description)])


def parsed(document: Document | None) -> Json:
    assert document is not None
    found: Json = orjson.loads(document.plain())
    return found


async def index(service: OpenAPIService) -> dict[str, str]:
    paths = parsed(await service.merged().v3_index.get())["paths"]
    return {path: entry["serverRelativeURL"] for path, entry in paths.items()}


async def v2_paths(service: OpenAPIService) -> set[str]:
    return set(parsed(await service.merged().v2.get())["paths"])


class Counted:
    """Routes that know how often they were asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Iterable[Route]:
        self.times += 1
        return [route("counted")]


async def test_nothing_is_made_before_somebody_asks_and_then_once() -> None:
    service, routes = OpenAPIService(), Counted()
    service.update(RouteContainer("counted", routes))
    assert routes.times == 0
    documents = await asyncio.gather(*(service.v3("counted") for _ in range(5)))
    assert routes.times == 1
    assert all(document is documents[0] for document in documents)


async def test_the_index_names_every_document_with_the_hash_of_what_it_says() -> None:
    service = OpenAPIService()
    service.update(container("apis/g/v1"))
    document = await service.v3("apis/g/v1")
    assert document is not None
    assert len(document.etag) == 128
    assert await index(service) == {"apis/g/v1": f"/openapi/v3/apis/g/v1?hash={document.etag}"}


async def test_a_changed_container_changes_its_hash_and_no_other() -> None:
    service = OpenAPIService()
    service.update(container("one"))
    service.update(container("two"))
    before = await index(service)
    service.update(container("two", "get something else"))
    after = await index(service)
    assert (before["one"] == after["one"], before["two"] == after["two"]) == (True, False)


async def test_the_same_routes_again_have_the_same_hash() -> None:
    service = OpenAPIService()
    service.update(container("one"))
    before = await index(service)
    service.update(container("one"))
    assert await index(service) == before


async def test_a_removed_container_is_gone_from_every_document() -> None:
    service = OpenAPIService()
    service.update(container("one"))
    service.update(container("two"))
    assert await v2_paths(service) == {"/one/", "/two/"}
    service.remove("two")
    service.remove("never there")
    assert await v2_paths(service) == {"/one/"}
    assert set(await index(service)) == {"one"}
    assert await service.v3("two") is None


async def test_merged_documents_stay_until_something_changes() -> None:
    service, below = OpenAPIService(), OpenAPIService()
    above = OpenAPIService(below)
    below.update(container("below"))
    merged = above.merged()
    assert above.merged() is merged
    assert service.merged() is service.merged()
    below.update(container("more"))
    assert above.merged() is not merged


async def test_a_server_shows_its_delegates_documents_and_its_own_first() -> None:
    below = OpenAPIService()
    above = OpenAPIService(below)
    below.update(container("both", "from below"))
    below.update(container("below"))
    above.update(container("both", "from above"))
    assert parsed(await above.v3("both"))["paths"]["/both/"]["get"]["description"] == "from above"
    assert set(await index(above)) == {"both", "below"}
    assert parsed(await above.merged().v2.get())["paths"]["/both/"]["get"]["description"] == "from above"


async def test_the_protobuf_form_has_the_tag_of_the_document() -> None:
    service = OpenAPIService()
    service.update(container("one"))
    merged = service.merged()
    plain, protobuf = await merged.v2.get(), await merged.v2_protobuf.get()
    assert protobuf.etag == plain.etag
    assert protobuf.plain() != plain.plain()


async def test_making_happens_off_the_event_loop() -> None:
    loop_thread = threading.get_ident()
    made_in = await Lazy.in_thread(threading.get_ident).get()
    assert made_in != loop_thread


async def test_a_failure_reaches_everyone_who_waits_and_the_next_one_tries_again() -> None:
    failures = ["not now"]

    def make() -> str:
        if failures:
            raise OSError(failures.pop())
        return "made"

    lazy = Lazy.in_thread(make)
    outcomes = await asyncio.gather(lazy.get(), lazy.get(), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["not now", "not now"]
    assert await lazy.get() == "made"


async def test_one_who_goes_away_does_not_stop_the_making_for_the_others() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def make() -> str:
        started.set()
        await go_on.wait()
        return "made"

    lazy = Lazy(make)
    leaving, staying = asyncio.create_task(lazy.get()), asyncio.create_task(lazy.get())
    await started.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    go_on.set()
    assert await staying == "made"


def test_a_document_reads_back_as_it_was() -> None:
    document = Document.of(b"x" * 10_000)
    assert document.plain() == b"x" * 10_000
    assert len(document.compressed) < 200
