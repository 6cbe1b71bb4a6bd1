"""The namespace controller on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from controllers_on_a_server import ControlledServer, controlled_server, managed
from custom_resources import definition
from patience import PATIENCE

from pilothouse.client.rest.options import ListOptions
from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOLD = "example.com/hold"
WELL = {
    "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("namespaces")) as server, managed(server, "namespace"):
        yield server


async def conditions(server: ControlledServer, name: str) -> dict[str, tuple[str, str, str]]:
    """As soon as the namespace has some."""
    namespaces = server.client.resource("v1", "namespaces")
    selected = ListOptions(field_selector=f"metadata.name={name}", timeout_seconds=PATIENCE)
    async with await namespaces.watch(selected) as watch:
        async for event in watch:
            if found := (event.object["status"] or {}).get("conditions"):
                return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found}
    raise AssertionError(f"{name} has no conditions")


async def test_everything_in_a_namespace_goes_with_it_also_custom_resources(server: ControlledServer) -> None:
    await server.install(definition())
    await server.create_namespace("full")
    kinds: list[tuple[str, str, Json]] = [
        ("v1", "configmaps", {}),
        ("v1", "services", {"spec": {"ports": [{"port": 80}]}}),
        ("v1", "pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}}),
        ("rbac.authorization.k8s.io/v1", "roles", {"rules": []}),
        ("example.com/v1", "widgets", {"apiVersion": "example.com/v1", "kind": "Widget"}),
    ]
    for api_version, plural, fields in kinds:
        objects = server.client.resource(api_version, plural, namespace="full")
        await objects.create({"metadata": {"name": "a"}, **fields})
    await server.delete_namespace("full")
    await server.until_namespace_gone("full")
    for api_version, plural, _ in kinds:
        listing = await server.client.resource(api_version, plural).list()
        assert not [item for item in listing["items"] if item["metadata"]["namespace"] == "full"], plural


async def test_conditions_report_remaining_content_until_the_namespace_is_deleted(server: ControlledServer) -> None:
    await server.create_namespace("held")
    objects = server.client.resource("v1", "configmaps", namespace="held")
    await objects.create({"metadata": {"name": "a", "finalizers": [HOLD]}})
    await objects.create({"metadata": {"name": "b"}})
    await server.delete_namespace("held")
    assert await conditions(server, "held") == {
        **WELL,
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {HOLD} in 1 resource instances",
        ),
    }
    await objects.patch("a", {"metadata": {"finalizers": None}})
    await server.until_namespace_gone("held")


async def test_pods_go_before_everything_else(server: ControlledServer) -> None:
    await server.create_namespace("ordered")
    pods = server.client.resource("v1", "pods", namespace="ordered")
    secrets = server.client.resource("v1", "secrets", namespace="ordered")
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await pods.create({"metadata": {"name": "a", "finalizers": [HOLD]}, "spec": spec})
    await secrets.create({"metadata": {"name": "needed-by-the-pod"}})
    await server.delete_namespace("ordered")
    told = await conditions(server, "ordered")
    assert told["NamespaceContentRemaining"][2] == "Some resources are remaining: pods. has 1 resource instances"
    assert "deletionTimestamp" not in (await secrets.get("needed-by-the-pod"))["metadata"]
    await pods.patch("a", {"metadata": {"finalizers": None}})
    await server.until_namespace_gone("ordered")


async def test_a_finalizer_of_the_namespace_itself_is_left_to_its_owner(server: ControlledServer) -> None:
    await server.create_namespace("kept", spec={"finalizers": [HOLD]})
    await server.delete_namespace("kept")
    namespaces = server.client.resource("v1", "namespaces")
    selected = ListOptions(field_selector="metadata.name=kept", timeout_seconds=PATIENCE)
    async with await namespaces.watch(selected) as watch:
        async for event in watch:
            if event.object["spec"]["finalizers"] == [HOLD]:
                break
    kept = await namespaces.get("kept")
    await namespaces.update({**kept, "spec": {"finalizers": []}}, subresource="finalize")
    await server.until_namespace_gone("kept")
