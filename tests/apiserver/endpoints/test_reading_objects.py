"""GET and LIST: versions, pages, selectors, views and media types."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from whole_server import CONFIG_MAPS, create_config_map

from pilothouse.machinery.protobuf import codec
from pilothouse.testing import API, Answer

PROTOBUF = "application/vnd.kubernetes.protobuf"


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.json["items"]]


async def test_a_read_sees_every_write_that_was_answered_before(api: API) -> None:
    for i in range(20):
        await create_config_map(api, f"c{i:02}")
        assert len(names(await api.request("GET", CONFIG_MAPS))) == i + 1


async def test_pages_show_the_state_of_the_first_page(api: API) -> None:
    for i in range(5):
        await create_config_map(api, f"c{i}")
    first = await api.request("GET", f"{CONFIG_MAPS}?limit=2")
    assert names(first) == ["c0", "c1"]
    assert first.json["metadata"]["remainingItemCount"] == 3
    await api.request("DELETE", f"{CONFIG_MAPS}/c3")
    await create_config_map(api, "c9")
    second = await api.request("GET", f"{CONFIG_MAPS}?limit=2&continue={first.json['metadata']['continue']}")
    assert names(second) == ["c2", "c3"]
    last = await api.request("GET", f"{CONFIG_MAPS}?continue={second.json['metadata']['continue']}")
    assert names(last) == ["c4"]
    assert "continue" not in last.json["metadata"]
    token = first.json["metadata"]["continue"]
    rest = await api.request("GET", f"{CONFIG_MAPS}?limit=1&resourceVersion=0&continue={token}")
    assert names(rest) == ["c2", "c3", "c4"]


async def test_an_exact_version_shows_the_past(api: API) -> None:
    made = await create_config_map(api, "a")
    await create_config_map(api, "b")
    version = made["metadata"]["resourceVersion"]
    past = await api.request("GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact")
    assert names(past) == ["a"]
    assert past.json["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("resourceVersion={a}&resourceVersionMatch=Exact", ["a"]),
        ("resourceVersion={a}&resourceVersionMatch=Exact&limit=5", ["a"]),
        ("resourceVersion={a}&limit=5", ["a"]),
        ("resourceVersion={a}", ["a", "b", "c"]),
        ("resourceVersion={a}&resourceVersionMatch=NotOlderThan", ["a", "b", "c"]),
        ("resourceVersion={a}&resourceVersionMatch=NotOlderThan&limit=2", ["a", "b"]),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=2", ["a", "b", "c"]),
        ("resourceVersion=0&limit=2", ["a", "b", "c"]),
        ("limit=2", ["a", "b"]),
    ],
)
async def test_a_list_shows_the_past_when_asked_for_exactly_that_and_else_what_is_newest(
    api: API, query: str, expected: list[str]
) -> None:
    made = await create_config_map(api, "a")
    await create_config_map(api, "b")
    await create_config_map(api, "c")
    # What the cache holds, and what "0" is answered from, is as new as the last consistent list.
    assert names(await api.request("GET", CONFIG_MAPS)) == ["a", "b", "c"]
    listed = await api.request("GET", f"{CONFIG_MAPS}?{query.format(a=made['metadata']['resourceVersion'])}")
    assert names(listed) == expected


TOKEN = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"
"""{"v":"meta.k8s.io/v1","rv":1,"start":"a\\u0000"}"""


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersion=0&resourceVersionMatch=Exact", 'resourceVersionMatch "exact" is forbidden'),
        (f"resourceVersion=7&continue={TOKEN}", "specifying resource version is not allowed when using continue"),
        ("resourceVersion=x&continue=x", "invalid continue token"),
        ("resourceVersion=x", "invalid resource version"),
    ],
)
async def test_versions_that_make_no_sense_are_refused(api: API, query: str, message: str) -> None:
    refused = await api.request("GET", f"{CONFIG_MAPS}?{query}")
    assert refused.status in (400, 422)
    assert message in refused.json["message"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("labelSelector=app%3Dweb", ["a", "c"]),
        ("labelSelector=app!%3Dweb", ["b", "d"]),
        ("labelSelector=app+in+(db,web),tier", ["c"]),
        ("labelSelector=!app", ["d"]),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db&labelSelector=app", ["a", "c"]),
    ],
)
async def test_selectors_choose(api: API, selector: str, expected: list[str]) -> None:
    labels = {"a": {"app": "web"}, "b": {"app": "db"}, "c": {"app": "web", "tier": "1"}, "d": {}}
    for name, own in labels.items():
        await create_config_map(api, name, metadata={"labels": own})
    assert names(await api.request("GET", f"{CONFIG_MAPS}?{selector}")) == expected


async def test_a_list_across_namespaces_is_in_key_order(api: API) -> None:
    await api.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a-ns"}}
    )
    await create_config_map(api, "z", "a-ns")
    await create_config_map(api, "a")
    found = names(await api.request("GET", "/api/v1/configmaps"))
    assert [name for name in found if name in ("a", "z")] == ["z", "a"]


async def test_items_of_a_list_do_not_repeat_their_kind(api: API) -> None:
    await create_config_map(api, "a")
    listed = (await api.request("GET", CONFIG_MAPS)).json
    assert listed["kind"] == "ConfigMapList"
    assert "kind" not in listed["items"][0]


async def test_protobuf_and_json_say_the_same(api: API) -> None:
    await create_config_map(api, "a", data={"k": "v"}, binaryData={"b": "AAE="})
    as_json = (await api.request("GET", f"{CONFIG_MAPS}/a")).json
    answer = await api.request("GET", f"{CONFIG_MAPS}/a", accept=PROTOBUF)
    assert answer.headers["content-type"] == PROTOBUF
    assert codec.decode(answer.body) == as_json
    listed = codec.decode((await api.request("GET", CONFIG_MAPS, accept=PROTOBUF)).body)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_a_protobuf_body_creates_an_object(api: API) -> None:
    body = codec.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (await api.request("POST", CONFIG_MAPS, body, media=PROTOBUF)).json["data"] == {"k": "v"}
    broken = await api.request("POST", CONFIG_MAPS, body[:-3], media=PROTOBUF)
    assert broken.status == 400


async def test_a_table_has_columns_and_rows(api: API) -> None:
    await create_config_map(api, "a", data={"k": "v"})
    table = (await api.request("GET", CONFIG_MAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_metadata_alone_can_be_asked_for(api: API) -> None:
    await create_config_map(api, "a", data={"k": "v"})
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    found = (await api.request("GET", f"{CONFIG_MAPS}/a", accept=accept)).json
    assert (found["kind"], "data" in found) == ("PartialObjectMetadata", False)


async def test_a_large_answer_is_compressed_for_those_who_can_read_it(api: API) -> None:
    await create_config_map(api, "a", data={"k": "x" * 200_000})
    answer = await api.request("GET", f"{CONFIG_MAPS}/a", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == (await api.request("GET", f"{CONFIG_MAPS}/a")).body


async def test_a_long_list_is_streamed_whole(api: API) -> None:
    await asyncio.gather(*(create_config_map(api, f"c{i:04}") for i in range(450)))
    assert names(await api.request("GET", CONFIG_MAPS)) == [f"c{i:04}" for i in range(450)]


async def test_people_get_pretty_json(api: API) -> None:
    await create_config_map(api, "a")
    assert b'\n  "kind"' in (await api.request("GET", f"{CONFIG_MAPS}/a", user_agent="curl/8")).body
    assert b'\n  "kind"' in (await api.request("GET", f"{CONFIG_MAPS}/a?pretty=true")).body
    for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/a"):
        assert (await api.request("GET", f"{path}?pretty=true")).body.endswith(b"\n}")
    assert (await api.request("GET", f"{CONFIG_MAPS}/a")).body.count(b"\n") == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/apis/nosuch.example.com/v1/things", 404),
        ("/api/v9/things", 404),
        ("/api/v1/nosuch", 404),
        ("/api/v1/namespaces/default/configmaps/a/status", 404),
        ("/api/v1/configmaps/a", 404),
    ],
)
async def test_what_does_not_exist_is_not_found(api: API, path: str, status: int) -> None:
    assert (await api.request("GET", path)).status == status


async def test_a_method_that_a_path_does_not_have_is_not_allowed(api: API) -> None:
    answer = await api.request("POST", f"{CONFIG_MAPS}/a", {})
    assert (answer.status, answer.json["reason"]) == (405, "MethodNotAllowed")
