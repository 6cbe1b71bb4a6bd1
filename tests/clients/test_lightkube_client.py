"""lightkube as its users use it: typed resources, server-side apply, patches, watches and custom resources."""

from __future__ import annotations

import pytest
from custom_resources import definition, install, widget
from whole_server import whole_server

lightkube = pytest.importorskip("lightkube")


async def test_lightkube_applies_patches_watches_and_deletes_objects() -> None:
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    async with whole_server() as server:
        client = lightkube.AsyncClient(_config(server.kubeconfig), field_manager="tests")
        one = ConfigMap(metadata=ObjectMeta(name="one", namespace="default"), data={"a": "1"})
        applied = await client.apply(one)
        assert applied.metadata.managedFields[0].manager == "tests"
        patched = await client.patch(ConfigMap, "one", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
        assert patched.data == {"a": "1", "b": "2"}
        listed = [each.metadata.name async for each in client.list(ConfigMap, fields={"metadata.name": "one"})]
        assert listed == ["one"]
        async for event, each in client.watch(ConfigMap, fields={"metadata.name": "one"}):
            assert (event, each.data) == ("ADDED", {"a": "1", "b": "2"})
            break
        await client.delete(ConfigMap, "one")
        with pytest.raises(lightkube.ApiError, match='configmaps "one" not found'):
            await client.get(ConfigMap, "one")
        await client.close()


async def test_lightkube_knows_custom_resources_by_their_names() -> None:
    from lightkube.generic_resource import create_namespaced_resource

    kind = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    async with whole_server() as server:
        await install(server, definition())
        client = lightkube.AsyncClient(_config(server.kubeconfig), namespace="default")
        created = await client.create(kind.from_dict(widget("a", spec={"color": "red"})))
        assert created["spec"] == {"color": "red", "size": 1}
        assert [each.metadata.name async for each in client.list(kind)] == ["a"]
        await client.close()


def _config(kubeconfig: object) -> object:
    return lightkube.KubeConfig.from_file(str(kubeconfig))
