"""`--enable-garbage-collector=false`: nobody sees to dependents, so no delete waits for somebody who does."""

from __future__ import annotations

import pytest
from whole_server import CONFIG_MAPS, create_config_map, whole_server

from pilothouse.client import Json


@pytest.mark.parametrize("policy", ["Orphan", "Foreground"])
async def test_objects_go_at_once_whatever_is_to_become_of_their_dependents(policy: str) -> None:
    async with whole_server(enable_garbage_collector="false") as api:
        await create_config_map(api, "a")
        await create_config_map(api, "b", metadata={"finalizers": ["example.com/mine"]})
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
        for name in ("a", "b"):
            assert (await api.request("DELETE", f"{CONFIG_MAPS}/{name}", body)).status == 200
        assert (await api.request("GET", f"{CONFIG_MAPS}/a")).status == 404
        kept = (await api.request("GET", f"{CONFIG_MAPS}/b")).json["metadata"]
    assert (kept["finalizers"], "deletionTimestamp" in kept) == (["example.com/mine"], True)


async def test_a_collection_is_deleted_by_several_at_once() -> None:
    async with whole_server(delete_collection_workers="4") as api:
        for number in range(10):
            await create_config_map(api, f"c{number}", metadata={"labels": {"a": "b"}})
        assert (await api.request("DELETE", f"{CONFIG_MAPS}?labelSelector=a%3Db")).status == 200
        assert (await api.request("GET", f"{CONFIG_MAPS}?labelSelector=a%3Db")).json["items"] == []
