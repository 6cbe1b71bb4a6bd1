"""resourcequota-controller: what quotas say is used is what there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from awaiting import until
from controllers_on_a_server import ControlledServer, controlled_server, managed
from custom_resources import definition

from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.resourcequota import controller
from pilothouse.kube.admission.quota.registry import evaluator_of
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = DeleteOptions(grace_period_seconds=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path_factory.mktemp("quotas")) as server:
        yield ControlledServer(server.client, ControllerConfig(quota_evaluators=evaluator_of))


@pytest_asyncio.fixture(loop_scope="module")
async def server(idle: ControlledServer) -> AsyncIterator[ControlledServer]:
    async with managed(idle, "resourcequota"):
        yield idle


class Namespace:
    def __init__(self, server: ControlledServer, name: str) -> None:
        self._client, self._name = server.client, name

    def resource(self, plural: str, api_version: str = "v1") -> ResourceClient:
        return self._client.resource(api_version, plural, namespace=self._name)

    async def quota(self, hard: dict[str, str], **spec: Any) -> None:
        await self.resource("resourcequotas").create({"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})

    async def uses(self, **used: str) -> Json:
        wanted = {name.replace("__", "/").replace("_", "."): amount for name, amount in used.items()}
        return await self.until(lambda status: status.get("used") == wanted)

    async def until(self, holds: Callable[[Json], bool]) -> Json:
        quota = await until(self.resource("resourcequotas"), "q", lambda quota: holds(quota["status"]))
        status: Json = quota["status"]
        return status

    async def pod(self, name: str, cpu: str = "100m", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        await self.resource("pods").create({"metadata": {"name": name}, "spec": {"containers": [container], **spec}})


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(idle: ControlledServer, request: pytest.FixtureRequest) -> Namespace:
    name = request.node.name.replace("_", "-")[:60].strip("-")
    await idle.create_namespace(name)
    return Namespace(idle, name)


async def test_a_new_quota_counts_existing_objects(server: ControlledServer, namespace: Namespace) -> None:
    await namespace.pod("a", "1500m")
    await namespace.pod("b", "0.5")
    await namespace.resource("configmaps").create({"metadata": {"name": "a"}})
    await namespace.quota({"pods": "5", "requests.cpu": "4000m", "configmaps": "9", "count/secrets": "1"})
    status = await namespace.uses(pods="2", requests_cpu="2", configmaps="1", count__secrets="0")
    assert status["hard"] == {"pods": "5", "requests.cpu": "4", "configmaps": "9", "count/secrets": "1"}


async def test_deleted_objects_release_quota(server: ControlledServer, namespace: Namespace) -> None:
    await namespace.quota({"pods": "1", "count/configmaps": "1"})
    await namespace.uses(pods="0", count__configmaps="0")
    await namespace.pod("a")
    await namespace.resource("configmaps").create({"metadata": {"name": "a"}})
    await namespace.uses(pods="1", count__configmaps="1")
    with pytest.raises(Forbidden, match="exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"):
        await namespace.pod("b")
    await namespace.resource("pods").delete("a", NOW)
    await namespace.resource("configmaps").delete("a")
    await namespace.uses(pods="0", count__configmaps="0")
    await namespace.pod("b")


async def test_a_pod_that_has_ended_is_only_counted_as_an_object(
    server: ControlledServer, namespace: Namespace
) -> None:
    await namespace.quota({"pods": "5", "count/pods": "5", "requests.cpu": "1"})
    await namespace.uses(pods="0", count__pods="0", requests_cpu="0")
    await namespace.pod("a")
    await namespace.resource("pods").patch("a", {"status": {"phase": "Succeeded"}}, subresource="status")
    await namespace.uses(pods="0", count__pods="1", requests_cpu="0")


async def test_changing_a_service_type_releases_unused_quota(server: ControlledServer, namespace: Namespace) -> None:
    await namespace.quota({"services": "5", "services.nodeports": "5", "services.loadbalancers": "5"})
    await namespace.uses(services="0", services_nodeports="0", services_loadbalancers="0")
    service = {"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    await namespace.resource("services").create(service)
    await namespace.uses(services="1", services_nodeports="1", services_loadbalancers="1")
    await namespace.resource("services").patch("a", {"spec": {"type": "ClusterIP"}})
    await namespace.uses(services="1", services_nodeports="0", services_loadbalancers="0")


async def test_only_objects_in_scope_count_as_used(server: ControlledServer, namespace: Namespace) -> None:
    await namespace.pod("short", activeDeadlineSeconds=60)
    await namespace.pod("long")
    await namespace.quota({"pods": "5", "requests.cpu": "1"}, scopes=["Terminating"])
    await namespace.uses(pods="1", requests_cpu="100m")
    await namespace.resource("pods").patch("long", {"spec": {"activeDeadlineSeconds": 9}})
    await namespace.uses(pods="2", requests_cpu="200m")


async def test_changed_limits_replace_old_limits_in_the_status(server: ControlledServer, namespace: Namespace) -> None:
    await namespace.quota({"pods": "5", "secrets": "5"})
    await namespace.uses(pods="0", secrets="0")
    spec = {"hard": {"pods": None, "secrets": "7", "count/services": "1"}}
    await namespace.resource("resourcequotas").patch("q", {"spec": spec})
    status = await namespace.uses(secrets="0", count__services="0")
    assert status["hard"] == {"secrets": "7", "count/services": "1"}


async def test_a_quota_with_current_usage_is_not_written(
    server: ControlledServer, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Json] = []
    update_status = ResourceClient.update_status

    async def counted(self: ResourceClient, obj: Json) -> Json:
        answer = await update_status(self, obj)
        written.append(answer["status"]["hard"])
        return answer

    monkeypatch.setattr(ResourceClient, "update_status", counted)
    quotas = namespace.resource("resourcequotas")

    def limits(cpu: str, status: Json) -> bool:
        return bool(status.get("hard") == {"requests.cpu": cpu})

    await namespace.quota({"requests.cpu": "4000m"})
    await namespace.until(partial(limits, "4"))
    for cpu in ("5", "6", "7"):
        await quotas.patch("q", {"metadata": {"labels": {"cpu": cpu}}})
        await quotas.patch("q", {"spec": {"hard": {"requests.cpu": f"{cpu}000m"}}})
        await namespace.until(partial(limits, cpu))
    assert written == [{"requests.cpu": cpu} for cpu in ("4", "5", "6", "7")]


async def test_custom_resources_are_counted(server: ControlledServer, namespace: Namespace) -> None:
    await server.install(definition())
    widgets = namespace.resource("widgets", "example.com/v1")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget"}
    await widgets.create({"metadata": {"name": "a"}, **widget})
    await namespace.quota({"count/widgets.example.com": "1"})
    await namespace.until(lambda status: status.get("used") == {"count/widgets.example.com": "1"})
    with pytest.raises(Forbidden):
        await widgets.create({"metadata": {"name": "b"}, **widget})
    await widgets.delete("a")
    await namespace.until(lambda status: status.get("used") == {"count/widgets.example.com": "0"})


async def test_limits_of_unserved_resources_have_no_usage_and_do_no_harm(
    server: ControlledServer, namespace: Namespace
) -> None:
    await namespace.quota({"count/gadgets.example.com": "1", "pods": "1"})
    status = await namespace.uses(pods="0")
    assert status["hard"] == {"count/gadgets.example.com": "1", "pods": "1"}


async def test_changes_during_downtime_are_counted_at_startup(idle: ControlledServer, namespace: Namespace) -> None:
    async with managed(idle, "resourcequota"):
        await namespace.quota({"pods": "9", "configmaps": "9"})
        await namespace.uses(pods="0", configmaps="0")
    for name in "abc":
        await namespace.pod(name)
    await namespace.resource("configmaps").create({"metadata": {"name": "a"}})
    await asyncio.gather(*(namespace.resource("pods").delete(name, NOW) for name in "ab"))
    async with managed(idle, "resourcequota"):
        await namespace.uses(pods="1", configmaps="1")


async def test_a_resource_that_is_served_later_is_counted_then(
    idle: ControlledServer, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_DISCOVERY_PERIOD", 0.05)
    async with managed(idle, "resourcequota"):
        await namespace.quota({"count/gizmos.example.com": "5", "pods": "5"})
        await namespace.uses(pods="0")
        await idle.install(definition(plural="gizmos", kind="Gizmo"))
        await namespace.until(lambda status: status.get("used") == {"count/gizmos.example.com": "0", "pods": "0"})


async def test_all_quotas_are_added_up_anew_from_time_to_time(idle: ControlledServer, namespace: Namespace) -> None:
    config = replace(idle.config, resource_quota_sync_period=0.1)
    async with managed(ControlledServer(idle.client, config), "resourcequota"):
        await namespace.quota({"pods": "5"})
        await namespace.uses(pods="0")
        quotas = namespace.resource("resourcequotas")
        await quotas.patch("q", {"status": {"used": {"pods": "4"}}}, subresource="status")
        await namespace.uses(pods="0")
