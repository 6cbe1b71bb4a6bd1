"""The annotation that counts a daemon set's templates: who owns it, and where it is not shown."""

from __future__ import annotations

import pytest
from whole_server import whole_server

DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
COUNT = "deprecated.daemonset.template.generation"
AS_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
AS_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def daemon_set(image: str = "i") -> dict[str, object]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


@pytest.mark.parametrize("query", ["", "&dryRun=All"])
async def test_its_creator_owns_the_count(query: str) -> None:
    async with whole_server() as api:
        made = await api.request("POST", f"{DAEMON_SETS}?fieldManager=m{query}", daemon_set())
    [entry] = made.json["metadata"]["managedFields"]
    assert made.json["metadata"]["annotations"] == {COUNT: "1"}
    assert entry["fieldsV1"]["f:metadata"] == {"f:annotations": {".": {}, f"f:{COUNT}": {}}}


async def test_a_put_without_the_count_takes_it_over_and_does_not_change_it() -> None:
    async with whole_server() as api:
        await api.request("POST", f"{DAEMON_SETS}?fieldManager=m", daemon_set())
        put = await api.request("PUT", f"{DAEMON_SETS}/d?fieldManager=n", daemon_set())
    owners = [entry["manager"] for entry in put.json["metadata"]["managedFields"] if COUNT in str(entry)]
    assert (put.json["metadata"]["annotations"], owners) == ({COUNT: "1"}, ["n"])


async def test_metadata_alone_is_shown_without_the_count() -> None:
    async with whole_server() as api:
        await api.request("POST", DAEMON_SETS, daemon_set())
        one = await api.request("GET", f"{DAEMON_SETS}/d", accept=AS_METADATA)
        table = await api.request("GET", DAEMON_SETS, accept=AS_TABLE)
        whole = await api.request("GET", f"{DAEMON_SETS}?includeObject=Object", accept=AS_TABLE)
    assert "annotations" not in one.json["metadata"]
    assert "annotations" not in table.json["rows"][0]["object"]["metadata"]
    assert whole.json["rows"][0]["object"]["metadata"]["annotations"] == {COUNT: "1"}
