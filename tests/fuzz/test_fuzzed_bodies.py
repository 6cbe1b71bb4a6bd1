"""Bodies that are no objects: too deep, too long, broken, or larger than they look."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from fuzz_budget import budget
from fuzz_corpus import ATTACKS, JSON, PROTOBUF, YAML
from fuzz_objects import Generator
from fuzz_verdicts import bounded, check
from hypothesis import given
from hypothesis import strategies as st
from whole_server import CONFIG_MAPS

from pilothouse.client import GroupVersionKind, Json
from pilothouse.machinery.protobuf import codec
from pilothouse.machinery.schema import types
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
PATCHES = [MERGE, STRATEGIC, JSON_PATCH, APPLY]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
KINDS = [
    (CONFIG_MAPS, CONFIG_MAP),
    (DEPLOYMENTS, GroupVersionKind("apps", "v1", "Deployment")),
    ("/api/v1/namespaces/default/pods", GroupVersionKind("", "v1", "Pod")),
    ("/api/v1/namespaces/default/services", GroupVersionKind("", "v1", "Service")),
]


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_body_that_is_an_attack_is_refused_at_little_cost(api: API, name: str) -> None:
    body, media = ATTACKS[name]
    with bounded(3):
        answer = await api.request("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Strict", body, media=media)
    check(answer)
    assert answer.status >= 400


@pytest.mark.parametrize("media", PATCHES)
@pytest.mark.parametrize("name", [name for name, (_, media) in ATTACKS.items() if media != PROTOBUF])
async def test_a_patch_that_is_an_attack_is_refused_at_little_cost(api: API, name: str, media: str) -> None:
    with bounded(3):
        answer = await api.request("PATCH", f"{CONFIG_MAPS}/none?fieldManager=m", ATTACKS[name][0], media=media)
    check(answer)
    assert answer.status >= 400


GROWING: dict[str, list[Any]] = {
    "copies of copies": [
        {"op": "add", "path": "/data", "value": {"a": "x" * 1000}},
        *({"op": "copy", "from": "/data", "path": f"/data/k{n}"} for n in range(60)),
    ],
    "ten thousand and one operations": [{"op": "test", "path": "/data"}] * 10_001,
    "inserts at the front": [
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        *([{"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"}] * 9_990),
    ],
    "a path of a million steps": [{"op": "add", "path": "/a" * 1_000_000, "value": 1}],
    "an index without end": [{"op": "add", "path": "/metadata/finalizers/" + "9" * 100_000, "value": 1}],
}


@pytest.mark.parametrize("name", GROWING)
async def test_a_json_patch_cannot_make_an_object_grow_without_bounds(api: API, name: str) -> None:
    await api.request("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "grown"}})
    with bounded(3):
        answer = await api.request("PATCH", f"{CONFIG_MAPS}/grown?dryRun=All", GROWING[name], media=JSON_PATCH)
    check(answer)
    assert answer.status >= 400 or len(answer.body) < 1_000_000


def _wide(**meta: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide", **meta}}


WIDE: dict[str, Json] = {
    "labels": _wide(labels={f"k{n}": "v" for n in range(20_000)}),
    "owners": _wide(
        ownerReferences=[{"apiVersion": "v1", "kind": "A", "name": "b", "uid": str(n)} for n in range(9_000)]
    ),
    "finalizers": _wide(finalizers=[f"a.b/c{n}" for n in range(20_000)]),
}


@pytest.mark.parametrize("name", WIDE)
async def test_the_cost_of_an_object_grows_with_its_size_and_no_faster(api: API, name: str) -> None:
    with bounded(3):
        check(await api.request("POST", f"{CONFIG_MAPS}?dryRun=All", WIDE[name]))


async def test_a_quantity_of_many_zeros_is_read_at_once(api: API) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    with bounded(2):
        answer = await api.request(
            "POST",
            "/api/v1/namespaces/default/resourcequotas",
            {**quota, "spec": {"hard": {"cpu": "0" * 200_000 + "!"}}},
        )
    assert answer.status == 400


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, bytes, str]:
    """A path, the bytes of an object with some of them changed, and their media type."""
    path, kind = draw(st.sampled_from(KINDS))
    obj = Generator(Random(draw(st.integers(0, 1 << 32)))).object(kind, "broken")
    media = draw(st.sampled_from([JSON, YAML, PROTOBUF]))
    data = bytearray(_encoded(obj, kind) if media == PROTOBUF else orjson.dumps(obj, default=str))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return path, bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data), media


def _encoded(obj: Json, kind: GroupVersionKind) -> bytes:
    found = types.of(kind)
    assert found is not None
    try:
        return codec.encode(found.decode(obj).obj)
    except ValueError:
        return codec.encode({"apiVersion": str(kind.group_version), "kind": kind.kind, "metadata": {"name": "broken"}})


@budget(250)
@given(sent=broken())
async def test_broken_bodies_are_refused(api: API, sent: tuple[str, bytes, str]) -> None:
    path, body, media = sent
    with bounded(3):
        check(await api.request("POST", f"{path}?dryRun=All", body, media=media))


@budget(150)
@given(body=st.binary(max_size=60), media=st.sampled_from([JSON, YAML, PROTOBUF, *PATCHES, "text/plain", ""]))
async def test_any_bytes_are_refused(api: API, body: bytes, media: str) -> None:
    for method, target in (("POST", CONFIG_MAPS), ("PUT", f"{CONFIG_MAPS}/a"), ("PATCH", f"{CONFIG_MAPS}/a")):
        check(await api.request(method, f"{target}?fieldManager=m", body, media=media))
    check(await api.request("DELETE", f"{CONFIG_MAPS}/none", body, media=media))
