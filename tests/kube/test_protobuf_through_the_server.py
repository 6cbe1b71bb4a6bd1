"""Protobuf for every built-in kind that can be created, and for every list: the same objects as in JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from recorded import recorded
from whole_server import whole_server

from pilothouse.apiserver.endpoints.serializers.registry import JSON, PROTOBUF
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf import codec
from pilothouse.testing import API

VECTORS = recorded("protobuf-vectors")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MEDIA = PROTOBUF.media_type
NOT_RECORDED = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
"""Kinds of the other two servers of the chain."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A resource, or a subresource of it, that clients can use."""

    path: str
    """With `name` for the name of an object."""
    kind: GroupVersionKind
    verbs: frozenset[str]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as server:
        yield server


async def _endpoints(api: API) -> list[Endpoint]:
    found: list[Endpoint] = []
    for root in ("/api", "/apis"):
        document = (await api.request("GET", root, accept=AGGREGATED)).json
        for group in document["items"]:
            for version in group["versions"]:
                own = GroupVersion(group["metadata"].get("name", ""), version["version"])
                found.extend(endpoint for each in version["resources"] for endpoint in _of(root, own, each))
    return found


def _of(root: str, own: GroupVersion, resource: Json) -> Iterator[Endpoint]:
    space = "/namespaces/default" if resource["scope"] == "Namespaced" else ""
    path = f"{root}/{own}{space}/{resource['resource']}"
    yield Endpoint(path, _kind(resource, own), frozenset(resource["verbs"]))
    for each in resource.get("subresources") or ():
        yield Endpoint(f"{path}/name/{each['subresource']}", _kind(each, own), frozenset(each["verbs"]))


def _kind(resource: Json, own: GroupVersion) -> GroupVersionKind:
    """Where nothing else is said, of the version in which the resource is."""
    kind = resource["responseKind"]
    return GroupVersionKind(kind["group"], kind["version"], kind["kind"]) if kind["version"] else own.kind(kind["kind"])


def _is_created(endpoint: Endpoint) -> bool:
    """Streams are connected to with POST, too, but their options are no body."""
    kind = endpoint.kind
    return "create" in endpoint.verbs and not kind.kind.endswith("Options") and kind.group not in NOT_RECORDED


def _vector(kind: GroupVersionKind, suffix: str) -> bytes:
    return (VECTORS / f"{kind.group or 'core'}.{kind.version}.{kind.kind}{suffix}").read_bytes()


async def test_every_kind_that_can_be_created_is_read_and_written_as_upstream_does(api: API) -> None:
    kinds = {each.kind for each in await _endpoints(api) if _is_created(each)}
    assert len(kinds) > 60
    for kind in sorted(kinds, key=str):
        data, text = _vector(kind, ".pb"), _vector(kind, ".json")
        decoded = TypedDecoder(kind).decode(PROTOBUF, data, strict=True)
        assert decoded.kind == kind
        assert PROTOBUF.encode(decoded.obj) == data, kind
        read = TypedDecoder(kind).decode(JSON, text, strict=False).obj
        assert orjson.dumps(decoded.obj) == orjson.dumps(read), kind  # whose raw values may be spelled differently


async def test_a_server_takes_every_kind_as_protobuf_and_answers_in_it(api: API) -> None:
    for endpoint in await _endpoints(api):
        kind = endpoint.kind
        if not _is_created(endpoint) or "/name/" in endpoint.path or kind.kind == "Binding":
            continue
        obj = orjson.loads(_vector(kind, ".json"))
        obj["metadata"] = {"name": "name"} | ({"namespace": "default"} if "/namespaces/" in endpoint.path else {})
        answer = await api.request("POST", f"{endpoint.path}?dryRun=All", codec.encode(obj), media=MEDIA, accept=MEDIA)
        said = codec.decode(answer.body, default=kind)
        # With every field set few are valid; but all must have been understood to be refused for that.
        assert (answer.status, said["kind"]) in ((201, kind.kind), (422, "Status"), (403, "Status")), endpoint.path


async def test_every_list_reads_the_same_in_protobuf(api: API) -> None:
    for endpoint in await _endpoints(api):
        if "list" not in endpoint.verbs:
            continue
        for shape in ("", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"):
            text = await api.request("GET", endpoint.path, accept=JSON.media_type + shape)
            seen = text.json["metadata"].get("resourceVersion")  # ComponentStatuses have none
            at = f"?resourceVersion={seen}&resourceVersionMatch=Exact" if seen else ""
            wire = await api.request("GET", f"{endpoint.path}{at}", accept=MEDIA + shape)
            assert wire.status == text.status == 200, endpoint.path
            assert wire.headers["content-type"].startswith(MEDIA)
            assert codec.decode(wire.body, default=endpoint.kind) == _untyped_items(text.json), endpoint.path + shape


def _untyped_items(document: Json) -> Json:
    """A message within a message does not say its kind."""
    items = [
        {key: part for key, part in item.items() if key not in ("kind", "apiVersion")}
        for item in document["items"] or ()
    ]
    return document | {"items": items}
