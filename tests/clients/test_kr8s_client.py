"""kr8s as its users use it: objects by kind, patches, waits, watches and what the server says of itself."""

from __future__ import annotations

import pytest
from patience import PATIENCE
from whole_server import whole_server

kr8s = pytest.importorskip("kr8s")


async def test_kr8s_creates_finds_changes_watches_and_deletes_objects() -> None:
    from kr8s.asyncio.objects import ConfigMap, Namespace

    async with whole_server() as server:
        api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
        assert (await api.version())["gitVersion"].startswith("v1.36")
        space = await Namespace({"metadata": {"name": "kr8s"}}, api=api)
        await space.create()
        one = await ConfigMap({"metadata": {"name": "one", "namespace": "kr8s"}, "data": {"a": "1"}}, api=api)
        await one.create()
        await one.patch({"data": {"b": "2"}})
        await one.label({"seen": "yes"})
        found = [each async for each in api.get("configmaps", namespace="kr8s", label_selector={"seen": "yes"})]
        assert [each.raw["data"] for each in found] == [{"a": "1", "b": "2"}]
        async for event, each in api.watch("configmaps", namespace="kr8s"):
            assert (event, each.name) == ("ADDED", "one")
            break
        await one.delete()
        await one.wait("delete", timeout=PATIENCE)
        assert not await one.exists()
        assert "configmaps" in {each["name"] for each in await api.api_resources()}
