"""Snapshots as API objects: created to save, patched to go back."""

from __future__ import annotations

import pytest

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

SNAPSHOTS = "/apis/testing.pilothouse.dev/v1alpha1/snapshots"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def restore(api: API, name: str) -> int:
    patch = {"spec": {"restore": True}}
    return (await api.request("PATCH", f"{SNAPSHOTS}/{name}", patch, media="application/merge-patch+json")).status


async def test_a_snapshot_is_gone_back_to_as_often_as_one_likes(api: API) -> None:
    await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}})
    saved = {"apiVersion": "testing.pilothouse.dev/v1alpha1", "kind": "Snapshot", "metadata": {"name": "base"}}
    assert (await api.request("POST", SNAPSHOTS, saved)).status == 201
    async with api.fault(users=["nobody"], answer=500) as fault:
        for times in (1, 2):
            await api.request("DELETE", f"{CONFIG_MAPS}/kept")
            await api.request("POST", CONFIG_MAPS, {"metadata": {"name": "new"}})
            assert await restore(api, "base") == 200
            assert (await api.request("GET", f"{CONFIG_MAPS}/kept")).status == 200
            assert (await api.request("GET", f"{CONFIG_MAPS}/new")).status == 404
            status = (await api.request("GET", f"{SNAPSHOTS}/base")).json["status"]
            assert (status["saved"], status["restores"]) == (True, times)
        assert (await fault.status())["effect"] == "answer 500"  # the bench itself stays as it is


async def test_a_watch_ends_when_a_snapshot_is_restored(api: API) -> None:
    saved = {"apiVersion": "testing.pilothouse.dev/v1alpha1", "kind": "Snapshot", "metadata": {"name": "watched"}}
    await api.request("POST", SNAPSHOTS, saved)
    watch = await api.open("GET", f"{CONFIG_MAPS}?watch=1")
    assert await restore(api, "watched") == 200
    assert b'"reason":"Expired"' in await watch.read()
