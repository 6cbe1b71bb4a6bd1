"""The log of a server that deletes a namespace in several attempts."""

from __future__ import annotations

import logging

import pytest
from awaiting import until, until_gone
from whole_server import whole_server

from pilothouse.client import ResourceClient

HOLD = "example.com/hold"
NAMESPACE = "held"
DEAD = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.dead.example.com"},
    "spec": {
        "group": "dead.example.com",
        "version": "v1",
        "service": {"namespace": "default", "name": "dead"},
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    },
}
RETRY = "controller namespace failed to reconcile 'held', will try again: "


async def test_a_namespace_with_content_and_finalizers_is_deleted_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "pilothouse")
    async with whole_server(controllers="*") as api:
        client = api.client()
        api_services = client.resource("apiregistration.k8s.io/v1", "apiservices")
        namespaces = client.resource("v1", "namespaces")
        config_maps = client.resource("v1", "configmaps", namespace=NAMESPACE)
        await api_services.create(DEAD)
        await until(api_services, "v1.dead.example.com", lambda obj: obj.get("status", {}).get("conditions"))
        await namespaces.create({"metadata": {"name": NAMESPACE}})
        await _fill(config_maps, client.resource("v1", "pods", namespace=NAMESPACE))
        await namespaces.delete(NAMESPACE)
        await until(
            namespaces,
            NAMESPACE,
            lambda obj: (
                {"DiscoveryFailed", "SomeFinalizersRemain"}
                <= {condition["reason"] for condition in obj["status"].get("conditions", ())}
            ),
        )
        await config_maps.patch("held", {"metadata": {"finalizers": None}})
        await api_services.delete("v1.dead.example.com")
        await until_gone(namespaces, NAMESPACE)
    retries = [record for record in caplog.records if record.getMessage().startswith(RETRY)]
    assert {record.levelname for record in retries} == {"WARNING"}
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def _fill(config_maps: ResourceClient, pods: ResourceClient) -> None:
    await config_maps.create({"metadata": {"name": "held", "finalizers": [HOLD]}})
    await config_maps.create({"metadata": {"name": "free"}})
    await pods.create({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
