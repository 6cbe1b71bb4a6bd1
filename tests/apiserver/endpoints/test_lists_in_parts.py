"""Lists of every length in every media type and view: in parts they are what they would be whole."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from whole_server import CONFIG_MAPS, create_config_map

from pilothouse.apiserver.endpoints.list_encoding import PART
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf import codec
from pilothouse.testing import API

YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = ";as=Table;v=v1;g=meta.k8s.io"
METADATA = ";as=PartialObjectMetadataList;v={};g=meta.k8s.io"
LIMIT_RANGES = "/api/v1/namespaces/default/limitranges"
"""Whose tables show when an object was made, and not how long ago."""


def pretty(obj: Json) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_INDENT_2)


FORMS: dict[str, tuple[str, Callable[[Json], bytes]]] = {
    "YAML": (YAML, emit_yaml),
    "protobuf": (PROTOBUF, codec.encode),
    "indented": ("application/json;pretty=1", pretty),
}
VIEWS = ["", TABLE, METADATA.format("v1"), METADATA.format("v1beta1")]


async def fill(api: API, sizes: list[int]) -> None:
    """Texts of several lines, quotes and ends that YAML has an opinion on."""
    for number, size in enumerate(sizes):
        notes = {"a": "x" * size, "b": "one\ntwo\n\n", "c": 'q"\\', "d": "é\u2028"}
        made = {"metadata": {"name": f"n{number:04}", "annotations": notes}, "spec": {"limits": []}}
        assert (await api.request("POST", LIMIT_RANGES, made)).status == 201


@pytest.mark.parametrize("sizes", [[], [10], [10, 10, 10], [100_000] * 9], ids=["empty", "one", "few", "many"])
async def test_a_list_in_parts_is_the_list(api: API, sizes: list[int]) -> None:
    await fill(api, sizes)
    revision = (await api.request("GET", LIMIT_RANGES)).json["metadata"]["resourceVersion"]
    target = f"{LIMIT_RANGES}?resourceVersion={revision}&resourceVersionMatch=Exact"
    for view in VIEWS:
        plain = await api.request("GET", target, accept=f"application/json{view}")
        assert plain.body == orjson.dumps(plain.json) + b"\n"
        for media_type, encode in FORMS.values():
            if (media_type, view) == (PROTOBUF, TABLE):
                continue
            answer = await api.request("GET", target, accept=f"{media_type}{view}")
            assert answer.body == encode(plain.json), (media_type, view)


async def parts_of(api: API, target: str, **asked: Any) -> list[bytes]:
    response = await api.open("GET", target, **asked)
    return [part async for part in response.chunks()]


IN_PARTS = [
    (media_type, view)
    for media_type in ("application/json", *(media_type for media_type, _ in FORMS.values()))
    for view in VIEWS
    if (media_type, view) != (PROTOBUF, TABLE)  # tables have no protobuf
]


@pytest.mark.parametrize(("media_type", "view"), IN_PARTS)
async def test_however_long_a_list_is_its_parts_are_small(api: API, media_type: str, view: str) -> None:
    await fill(api, [50_000] * 12)
    parts = await parts_of(api, LIMIT_RANGES, accept=f"{media_type}{view}")
    assert sum(map(len, parts)) > 2 * PART
    assert max(map(len, parts)) < PART + 60_000


async def test_a_large_object_is_not_copied_into_a_list(api: API) -> None:
    for number in range(3):
        await create_config_map(api, f"large-{number}", data={"k": "v" * (PART + 1)})
    once, again = [[part for part in await parts_of(api, CONFIG_MAPS) if len(part) > PART] for _ in range(2)]
    assert len(once) == 3
    assert all(part is other for part, other in zip(once, again, strict=True))


async def test_a_short_list_says_how_long_it_is_and_a_long_one_is_a_stream(api: API) -> None:
    await create_config_map(api, "small", data={"k": "v" * 1000})
    short = await api.request("GET", CONFIG_MAPS)
    assert short.headers["content-length"] == str(len(short.body))
    await create_config_map(api, "large", data={"k": "v" * PART})
    assert "content-length" not in (await api.request("GET", CONFIG_MAPS)).headers


async def test_a_stream_is_compressed_for_those_who_take_it(api: API) -> None:
    await fill(api, [100_000] * 9)
    plain = await api.request("GET", LIMIT_RANGES)
    packed = await api.request("GET", LIMIT_RANGES, accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize("accept", [PROTOBUF, YAML, f"application/json{TABLE}", "application/json;pretty=1"])
async def test_what_was_never_encoded_before_is_encoded_beside_the_loop(
    api: API, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(api, [50_000] * 12)
    threads: set[str] = set()
    parse = StoredObject.parse

    def noting(self: StoredObject) -> Json:
        threads.add(threading.current_thread().name)
        return parse(self)

    monkeypatch.setattr(StoredObject, "parse", noting)
    monkeypatch.setattr(orjson, "loads", _noting(orjson.loads, threads))
    assert (await api.request("GET", LIMIT_RANGES, accept=accept)).status == 200
    assert threads
    assert all(name.startswith("offload") for name in threads)


def _noting(loads: Callable[[bytes], Any], threads: set[str]) -> Callable[[bytes], Any]:
    def noting(text: bytes) -> Any:
        if len(text) > 16 * 1024:
            threads.add(threading.current_thread().name)
        return loads(text)

    return noting
