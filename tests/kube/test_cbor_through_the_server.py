"""CBOR on a whole server, as kube-apiserver v1.36 with CBORServingAndStorage answers the same requests."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest
import pytest_asyncio
import yaml
from whole_server import CONFIG_MAPS, whole_server

from pilothouse.client import Json
from pilothouse.testing import API, Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

CBOR, APPLY = "application/cbor", "application/apply-patch+cbor"
META = "g=meta.k8s.io;v=v1"
FOOS = "/apis/ex.com/v1/namespaces/default/foos"
SPOKEN = "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[API]:
    directory: Path = tmp_path_factory.mktemp("cbor")
    async with whole_server(directory, feature_gates="CBORServingAndStorage=true") as server:
        yield server


def config_map(name: str, **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def read(answer: Answer) -> Any:
    """The one object in an answer."""
    (obj,) = items(answer.body)
    return obj


def items(body: bytes) -> Iterator[Any]:
    """The objects behind each other, read by a decoder that is not ours. Each is marked as CBOR."""
    stream = io.BytesIO(body)
    while stream.tell() < len(body):
        assert body[stream.tell() :].startswith(b"\xd9\xd9\xf7")
        yield _text(cbor2.load(stream))


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "items"):
        return {_text(key): _text(member) for key, member in value.items()}
    return [_text(item) for item in value] if isinstance(value, (list, tuple)) else value


async def post(api: API, path: str, obj: Any, *, query: str = "", accept: str = CBOR) -> Answer:
    body = obj if isinstance(obj, bytes) else cbor2.dumps(obj)
    return await api.request("POST", path + query, body, media=CBOR, accept=accept)


async def test_an_object_is_the_same_in_cbor_and_in_json(api: API) -> None:
    data = {"b": cbor2.CBORTag(22, b"hello"), "c": b"aGVsbG8="}
    created = await post(api, CONFIG_MAPS, config_map("same", data={"x": b"y", "z": "é"}, binaryData=data))
    assert (created.status, created.headers["content-type"]) == (201, CBOR)
    assert read(created)["binaryData"] == {"b": cbor2.CBORTag(22, b"hello"), "c": cbor2.CBORTag(22, b"hello")}
    plain = (await api.request("GET", f"{CONFIG_MAPS}/same")).json
    assert plain["data"] == {"x": "y", "z": "é"}
    assert plain["binaryData"] == {"b": "aGVsbG8=", "c": "aGVsbG8="}
    shown = read(await api.request("GET", f"{CONFIG_MAPS}/same", accept=CBOR))
    assert {**plain, "binaryData": shown.pop("binaryData")} == {**shown, "binaryData": read(created)["binaryData"]}


async def test_the_order_of_keys_is_left_to_chance(api: API) -> None:
    await post(api, CONFIG_MAPS, config_map("chance", data={"x": "y"}))
    answers = {(await api.request("GET", f"{CONFIG_MAPS}/chance", accept=CBOR)).body for _ in range(40)}
    assert len(answers) > 1


async def test_lists_and_metadata_alone(api: API) -> None:
    await post(api, CONFIG_MAPS, config_map("listed", data={"x": "y"}))
    one = "?fieldSelector=metadata.name=listed"
    listed = read(await api.request("GET", CONFIG_MAPS + one, accept=CBOR))
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    (item,) = listed["items"]
    assert item["data"] == {"x": "y"}
    assert "kind" not in item
    empty = read(await api.request("GET", CONFIG_MAPS + "?labelSelector=no=one", accept=CBOR))
    assert empty["items"] == []
    meta = read(await api.request("GET", f"{CONFIG_MAPS}/listed", accept=f"{CBOR};as=PartialObjectMetadata;{META}"))
    assert (meta["kind"], meta["metadata"]["name"]) == ("PartialObjectMetadata", "listed")
    many = await api.request("GET", CONFIG_MAPS + one, accept=f"{CBOR};as=PartialObjectMetadataList;{META}")
    assert [each["kind"] for each in read(many)["items"]] == ["PartialObjectMetadata"]


async def test_a_watch_is_a_sequence(api: API) -> None:
    await post(api, CONFIG_MAPS, config_map("watched"))
    query = "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=watched"
    answer = await api.request("GET", CONFIG_MAPS + query, accept=CBOR)
    assert answer.headers["content-type"] == "application/cbor-seq"
    (event,) = items(answer.body)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "ConfigMap")


NOT_ACCEPTED = f"only the following media types are accepted: {SPOKEN}"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"


@pytest.mark.parametrize(
    ("target", "accept", "why"),
    [
        (CONFIG_MAPS, "application/cbor-seq", NOT_ACCEPTED),
        (CONFIG_MAPS, f"{CBOR};as=Table;{META}", NOT_ACCEPTED),
        (f"{CONFIG_MAPS}?watch=1", "application/yaml", f"only the following media types are accepted: {STREAMS}"),
        (
            CONFIG_MAPS,
            "application/x",
            f"406: Not Acceptable\n\nAvailable representations: {SPOKEN}, {STREAMS}",
        ),
        (
            "/api",
            CBOR,
            "406: Not Acceptable\n\nAvailable representations: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
    ],
)
async def test_what_is_not_acceptable_is_told_with_all_that_is(api: API, target: str, accept: str, why: str) -> None:
    answer = await api.request("GET", target, accept=accept)
    assert answer.status == 406
    assert yaml.safe_load(answer.body)["message"] == why  # JSON is YAML, too


async def test_errors_of_a_resource_are_in_cbor_and_those_before_it_in_json(api: API) -> None:
    missing = await api.request("GET", f"{CONFIG_MAPS}/nope", accept=CBOR)
    assert (missing.status, missing.headers["content-type"]) == (404, CBOR)
    assert read(missing)["message"] == 'configmaps "nope" not found'
    unknown = await api.request("POST", CONFIG_MAPS, b"{}", media="application/x", accept=CBOR)
    assert (unknown.status, unknown.headers["content-type"]) == (415, CBOR)
    assert read(unknown)["message"].endswith(f"accepted media types include: {SPOKEN}")
    patched = await api.request("PATCH", f"{CONFIG_MAPS}/nope", b"{}", media=CBOR, accept=CBOR)
    assert (patched.status, patched.json["message"]) == (415, "415: Unsupported Media Type")


HEAD = "cannot be handled as a ConfigMap: "
NO_TYPE = "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: "
REFUSED = [
    ("a1", f"{NO_TYPE}unexpected EOF (a1)"),
    ("01", f"{NO_TYPE}cbor: cannot unmarshal positive integer into Go value of type v1.TypeMeta (01)"),
    (
        config_map("a", data={"a": 1}),
        f'ConfigMap in version "v1" {HEAD}cbor: cannot unmarshal positive integer into Go struct field '
        "v1.ConfigMap.data of type string",
    ),
    (
        config_map("a", data={"a": b"x"}, metadata=b"x"),
        f'ConfigMap in version "v1" {HEAD}cbor: cannot unmarshal byte string into Go struct field '
        "v1.ConfigMap.metadata of type v1.ObjectMeta",
    ),
    (
        config_map("a", binaryData={"a": "aGVsbG8="}),
        f'ConfigMap in version "v1" {HEAD}cbor: cannot unmarshal UTF-8 text string into Go struct field '
        "v1.ConfigMap.binaryData of type []uint8",
    ),
    (
        config_map("a", binaryData={"a": b"a!"}),
        f'ConfigMap in version "v1" {HEAD}cbor: failed to decode base64 from byte string: '
        "illegal base64 data at input byte 1",
    ),
    (
        config_map("a", zz=1, metadata={"name": "a", "nope": 1}),
        f'ConfigMap in version "v1" {HEAD}strict decoding error: cbor: found unknown field at map element index 3',
    ),
    (
        config_map("a", metadata={"name": "a", "nope": 1}),
        f'ConfigMap in version "v1" {HEAD}strict decoding error: cbor: found unknown field at map element index 1',
    ),
]


@pytest.mark.parametrize(("body", "why"), REFUSED, ids=[why[-40:] for _, why in REFUSED])
async def test_bodies_are_refused_in_the_words_of_upstreams_library(api: API, body: Any, why: str) -> None:
    sent = bytes.fromhex(body) if isinstance(body, str) else body
    answer = await post(api, CONFIG_MAPS, sent, query="?fieldValidation=Strict&dryRun=All")
    assert (answer.status, read(answer)["message"]) == (400, why)


async def test_an_unknown_field_is_warned_of_by_its_place(api: API) -> None:
    answer = await post(api, CONFIG_MAPS, config_map("warned", zz=1), query="?fieldValidation=Warn&dryRun=All")
    assert answer.status == 201
    assert answer.headers["warning"] == '299 - "cbor: found unknown field at map element index 3"'


async def test_applied_configurations_may_be_in_cbor(api: API) -> None:
    async def apply(manager: str, body: bytes) -> Answer:
        target = f"{CONFIG_MAPS}/applied?fieldManager={manager}"
        return await api.request("PATCH", target, body, media=APPLY, accept=CBOR)

    made = await apply("ann", cbor2.dumps(config_map("applied", data={"x": "y"})))
    assert (made.status, read(made)["data"]) == (201, {"x": "y"})
    assert (await apply("bob", cbor2.dumps(config_map("applied", data={"x": "z"})))).status == 409
    broken = await apply("ann", b"\xa1")
    assert (broken.status, read(broken)["message"]) == (400, "error decoding YAML: unexpected EOF")
    listed = read(await apply("ann", b"\x80"))["message"]
    assert listed == "error decoding YAML: cbor: cannot unmarshal array into Go value of type map[string]interface {}"
    huge = await apply("ann", cbor2.dumps(config_map("applied", data={"x": "a" * (3 << 20)})))
    assert huge.status == 413


async def test_options_of_a_delete_may_be_in_cbor(api: API) -> None:
    await post(api, CONFIG_MAPS, config_map("gone"))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
    kept = await api.request("DELETE", f"{CONFIG_MAPS}/gone", cbor2.dumps(options), media=CBOR, accept=CBOR)
    assert (kept.status, read(kept)["status"]) == (200, "Success")
    assert (await api.request("GET", f"{CONFIG_MAPS}/gone")).status == 200


async def test_the_resources_of_a_version_and_the_pages_for_people(api: API) -> None:
    resources = read(await api.request("GET", "/apis/apps/v1", accept=CBOR))
    assert (resources["kind"], resources["groupVersion"]) == ("APIResourceList", "apps/v1")
    page = await api.request("GET", "/statusz", accept=f"{CBOR};v=v1beta1;g=config.k8s.io;as=Statusz")
    assert page.headers["content-type"] == "application/cbor;g=config.k8s.io;v=v1beta1;as=Statusz"
    assert read(page)["kind"] == "Statusz"
    refused = read(await api.request("GET", "/statusz", accept=CBOR))["message"]
    assert refused.endswith("accepted: application/json, application/yaml, text/plain, application/cbor")


async def test_custom_resources_in_cbor(api: API) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await post(api, path, definition)).status == 201
    while (await api.request("GET", FOOS)).status != 200:
        pass
    spec = {"t": cbor2.CBORTag(1, 1577836800), "b": cbor2.CBORTag(22, b"\xff"), "n": -5, "f": 1.5}
    foo = {"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec}
    shown = {"t": "2020-01-01T00:00:00Z", "b": "/w==", "n": -5, "f": 1.5}
    assert read(await post(api, FOOS, foo))["spec"] == shown
    assert (await api.request("GET", f"{FOOS}/a")).json["spec"] == shown
    listed = read(await api.request("GET", FOOS, accept=CBOR))
    assert [(item["kind"], item["spec"]) for item in listed["items"]] == [("Foo", shown)]
    status = {**foo, "status": {"ok": True}}
    applied = await api.request(
        "PATCH", f"{FOOS}/a/status?fieldManager=m", cbor2.dumps(status), media=APPLY, accept=CBOR
    )
    assert (applied.status, read(applied)["status"]) == (200, {"ok": True})
    nameless = read(await post(api, FOOS, {"apiVersion": "ex.com/v1"}))["message"]
    assert "Object 'Kind' is missing in '{\"apiVersion\": \"ex.com/v1\"}'" in nameless


async def test_without_the_gate_nobody_speaks_cbor(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as api:
        refused = await api.request("POST", CONFIG_MAPS, cbor2.dumps(config_map("a")), media=CBOR)
        assert refused.status == 415
        assert (await api.request("GET", CONFIG_MAPS, accept=CBOR)).status == 406
        assert (await api.request("PATCH", f"{CONFIG_MAPS}/a", b"", media=APPLY)).status == 415
