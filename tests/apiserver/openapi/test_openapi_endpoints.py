"""/openapi/v2 and /openapi/v3 over HTTP: negotiation, tags, compression, caching."""

from __future__ import annotations

import gzip

import orjson
import pytest
from openapi_groups import config_maps, core

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.discovery.groups import ServerAddresses
from pilothouse.apiserver.endpoints.api_groups import install_legacy_api_group
from pilothouse.apiserver.endpoints.groups import APIGroup
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.filters.answer_headers import with_answer_headers
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.server.server import GenericAPIServer

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_DEPRECATED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture
async def server() -> Handler:
    """Two servers in a chain; the inner one has the legacy group."""
    inner = GenericAPIServer("inner", nobody)
    group = APIGroup("", [core(config_maps())])
    install_legacy_api_group(
        inner, group, Installer(AdmissionChain([]), AlwaysAllow()), ServerAddresses(lambda: "127.0.0.1")
    )
    outer = GenericAPIServer("outer", inner)
    outer.prepare_run()
    return with_answer_headers()(outer)


async def nobody(request: Request) -> Response:
    return Response(404)


async def get(server: Handler, target: str, **headers: str) -> Response:
    path, _, query = target.partition("?")
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def no_body(limit: int) -> bytes:
        return b""

    return await server(Request("GET", path, query, sent, no_body))


def header(response: Response, name: str) -> str:
    found = [value.decode() for key, value in response.headers if key == name.encode()]
    assert len(found) <= 1, f"{name} is there twice"
    return found[0] if found else ""


def body(response: Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


async def url_of_core(server: Handler) -> str:
    url: str = orjson.loads(body(await get(server, "/openapi/v3")))["paths"]["api/v1"]["serverRelativeURL"]
    return url


async def test_the_index_at_the_root_shows_the_openapi_paths(server: Handler) -> None:
    paths = orjson.loads(body(await get(server, "/")))["paths"]
    assert {"/openapi/v2", "/openapi/v3", "/openapi/v3/"} <= set(paths)


async def test_the_v3_index_leads_to_the_documents_of_the_whole_chain(server: Handler) -> None:
    index = orjson.loads(body(await get(server, "/openapi/v3")))["paths"]
    assert set(index) == {"api", "api/v1", "version"}
    document = orjson.loads(body(await get(server, index["api/v1"]["serverRelativeURL"])))
    assert (document["openapi"], "/api/v1/configmaps" in document["paths"]) == ("3.0.0", True)


async def test_what_is_asked_for_by_its_hash_may_be_kept_forever(server: Handler) -> None:
    url = await url_of_core(server)
    assert header(await get(server, url), "cache-control") == "public, immutable"
    assert header(await get(server, url), "expires").endswith("UTC")
    unhashed = await get(server, "/openapi/v3/api/v1")
    assert header(unhashed, "cache-control") == "no-cache, private"
    assert header(unhashed, "expires") == ""


async def test_an_old_hash_is_redirected_to_the_new_one(server: Handler) -> None:
    answer = await get(server, "/openapi/v3/api/v1?hash=OLD")
    assert (answer.status, header(answer, "location")) == (301, await url_of_core(server))
    assert header(answer, "cache-control") == "no-cache, private"


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
async def test_a_client_that_has_the_document_is_told_so(server: Handler, path: str) -> None:
    tag = header(await get(server, path), "etag")
    assert tag.startswith('"')
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await get(server, path, if_none_match=known)
        assert (again.status, again.body, header(again, "etag")) == (304, b"", tag)
    assert (await get(server, path, if_none_match='"other"')).status == 200


async def test_the_v2_document_is_compressed_for_those_who_can_take_it(server: Handler) -> None:
    plain = await get(server, "/openapi/v2", accept_encoding="gzip;q=0, *")
    packed = await get(server, "/openapi/v2", accept_encoding="deflate, gzip")
    assert (header(plain, "content-encoding"), header(packed, "content-encoding")) == ("", "gzip")
    assert gzip.decompress(body(packed)) == body(plain)
    assert header(packed, "etag") == header(plain, "etag")
    assert [value for name, value in plain.headers if name == b"vary"] == [b"Accept-Encoding", b"Accept"]


@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v3/api/v1"])
async def test_version_3_is_never_compressed(server: Handler, path: str) -> None:
    assert header(await get(server, path, accept_encoding="gzip"), "content-encoding") == ""


async def test_the_index_of_version_3_is_text_without_a_tag(server: Handler) -> None:
    answer = await get(server, "/openapi/v3", accept="text/html")
    assert (answer.status, header(answer, "content-type")) == (200, "text/plain; charset=utf-8")
    assert (header(answer, "etag"), header(answer, "vary")) == ("", "")


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"])
async def test_parts_of_a_document_can_be_asked_for(server: Handler, path: str) -> None:
    whole = await get(server, path)
    part = await get(server, path, range="bytes=2-5", accept_encoding="gzip")
    assert (part.status, part.body) == (206, body(whole)[2:6])
    assert header(part, "content-range") == f"bytes 2-5/{len(body(whole))}"
    assert header(whole, "accept-ranges") == header(part, "accept-ranges") == "bytes"


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        (PROTOBUF, PROTOBUF),
        (PROTOBUF_DEPRECATED, PROTOBUF),
        (f"application/json;q=0.5, {PROTOBUF}", PROTOBUF),
    ],
)
async def test_the_v2_document_comes_as_json_and_as_protobuf(server: Handler, accept: str, answered: str) -> None:
    answer = await get(server, "/openapi/v2", accept=accept)
    assert (answer.status, header(answer, "content-type")) == (200, answered)
    assert (body(answer)[:1] == b"{") == (answered == "application/json")


async def test_other_media_types_are_not_acceptable(server: Handler) -> None:
    assert (await get(server, "/openapi/v2", accept="text/html")).status == 406
    assert (await get(server, "/openapi/v3/api/v1", accept="text/html")).status == 406


async def test_a_document_that_is_not_there_is_a_bare_404(server: Handler) -> None:
    answer = await get(server, "/openapi/v3/apis/nosuch/v1")
    assert (answer.status, answer.body) == (404, b"")
