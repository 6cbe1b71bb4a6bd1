"""Which form an answer has: what the client accepts, what the endpoint can do, and what happens where they differ."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.machinery.protobuf.envelope import open_envelope
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROTOBUF = "application/vnd.kubernetes.protobuf"
SPOKEN = f"application/json, application/yaml, {PROTOBUF}"
STREAMED = f"application/json;stream=watch, {PROTOBUF};stream=watch"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
POD = "/api/v1/namespaces/default/pods/absent"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    async with whole_server(Path(tmp_path_factory.mktemp("negotiation"))) as server:
        yield server


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"])
@pytest.mark.parametrize("slash", ["", "/"])
async def test_discovery_is_had_in_every_media_type_with_and_without_a_slash(api: API, path: str, slash: str) -> None:
    plain = (await api.request("GET", path)).json
    for media_type in SPOKEN.split(", "):
        answer = await api.request("GET", path + slash, accept=media_type)
        assert (answer.status, answer.headers["content-type"]) == (200, media_type)
        assert "vary" not in answer.headers
    kind = open_envelope(answer.body).type_meta
    assert kind.endswith(plain["kind"].encode())
    assert (b"v1" in kind) == ("apiVersion" in plain)


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v1/", "/apis/apps/v1/"])
async def test_discovery_can_only_be_read(api: API, path: str) -> None:
    answer = await api.request("OPTIONS", path)
    assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("path", "available"),
    [
        ("/api", SPOKEN),
        ("/apis/apps/v1", SPOKEN),
        ("/version", "application/json"),
        ("/openid/v1/jwks", "application/jwk-set+json"),
        ("/.well-known/openid-configuration", "application/json"),
        ("/api/v1/pods", f"{SPOKEN}, {STREAMED}"),
        (POD, SPOKEN),
        (f"{POD}/log", f"text/plain, {SPOKEN}"),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "*", ";;", "garbage"])
async def test_a_route_names_the_media_types_it_has(api: API, path: str, available: str, accept: str) -> None:
    answer = await api.request("GET", path, accept=accept)
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"406: Not Acceptable\n\nAvailable representations: {available}",
        "reason": "NotAcceptable",
        "details": {},
        "code": 406,
    }


@pytest.mark.parametrize("path", ["/apis", "/apis/apps"])
async def test_the_aggregators_documents_are_no_routes(api: API, path: str) -> None:
    answer = await api.request("GET", path, accept="text/html")
    assert answer.json["message"] == f"only the following media types are accepted: {SPOKEN}"
    assert "details" not in answer.json


async def test_a_body_that_a_discovery_route_does_not_take_is_refused(api: API) -> None:
    answer = await api.request("GET", "/api/v1", b"x", media="text/plain")
    assert (answer.status, answer.json["message"]) == (415, "415: Unsupported Media Type")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", f"{POD}/exec"), ("GET", f"{POD}/proxy"), ("PATCH", f"{POD}/proxy")]
)
async def test_what_takes_the_connection_over_answers_in_any_media_type(api: API, method: str, path: str) -> None:
    answer = await api.request(method, path, accept="text/html")
    assert (answer.status, answer.json["message"]) == (404, 'pods "absent" not found')


@pytest.mark.parametrize(("method", "path"), [("POST", REVIEWS), ("GET", f"{POD}/log")])
async def test_what_is_never_listed_has_no_table(api: API, method: str, path: str) -> None:
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}} if method == "POST" else None
    answer = await api.request(method, path, body, accept=TABLE)
    assert (answer.status, answer.json["message"]) == (
        406,
        f"only the following media types are accepted: {SPOKEN}",
    )
    other = await api.request(method, path, body, accept=f"{TABLE},application/json")
    assert other.status in (201, 404)


@pytest.mark.parametrize("accept", [TABLE, "application/yaml;as=Table;g=meta.k8s.io;v=v1", "application/json;sv=v1"])
async def test_an_error_that_has_no_acceptable_form_is_indented_json(api: API, accept: str) -> None:
    answer = await api.request("GET", POD, accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/json")
    assert answer.body.startswith(b'{\n  "kind": "Status",\n')
    assert answer.body.endswith(b'  "code": 404\n}')


@pytest.mark.parametrize(
    ("path", "form", "field", "empty"),
    [
        (CONFIG_MAPS, "Table", "rows", "[]"),
        ("/api/v1/limitranges", "Table", "rows", "null"),
        ("/apis/rbac.authorization.k8s.io/v1/roles", "Table", "rows", "null"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Table", "rows", "null"),
        (CONFIG_MAPS, "PartialObjectMetadataList", "items", "null"),
    ],
)
async def test_a_view_that_upstream_makes_item_by_item_is_null_without_items(
    api: API, path: str, form: str, field: str, empty: str
) -> None:
    view = f"as={form};g=meta.k8s.io;v=v1"
    path += "?labelSelector=none"
    plain = await api.request("GET", path, accept=f"application/json;{view}")
    assert plain.body.endswith(f'"{field}":{empty}}}\n'.encode())
    pretty = await api.request("GET", path, accept=f"application/json;{view};pretty=1")
    assert pretty.body.endswith(f'"{field}": {empty}\n}}'.encode())
    yaml = await api.request("GET", path, accept=f"application/yaml;{view}")
    assert f"{field}: {empty}\n".encode() in yaml.body


async def test_only_what_is_not_indented_ends_with_a_newline(api: API) -> None:
    for path in (CONFIG_MAPS, "/api", POD):
        assert (await api.request("GET", path)).body.endswith(b"}\n")
        assert (await api.request("GET", f"{path}?pretty=true")).body.endswith(b"\n}")
        assert (await api.request("GET", path, user_agent="curl/8")).body.endswith(b"\n}")


async def test_a_body_that_is_no_protobuf_is_shown(api: API) -> None:
    answer = await api.request("POST", CONFIG_MAPS, b"{}", media=PROTOBUF)
    assert (answer.status, answer.json["message"]) == (
        400,
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a "
        "protobuf message, expected prefix [107 56 115 0] ({})",
    )
