"""Kinds that want a finalizer to be a known one or fully qualified, and how often an update without names it."""

from __future__ import annotations

import pytest
from rules import refusals, update_refusals
from whole_server import whole_server

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.kube.admissionregistration.webhook_configurations import VALIDATING_WEBHOOK_CONFIGURATIONS
from pilothouse.kube.apps.daemonsets import DAEMON_SETS
from pilothouse.kube.apps.deployments import DEPLOYMENTS
from pilothouse.kube.coordination.leases import LEASES
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.replicationcontrollers import REPLICATION_CONTROLLERS
from pilothouse.kube.core.resourcequotas import RESOURCE_QUOTAS
from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.kube.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS
from pilothouse.kube.resource.device_classes import DEVICE_CLASSES

NAMED = {"metadata": {"name": "x", "finalizers": ["A"]}}
UNQUALIFIED = (
    'metadata.finalizers[0]: Invalid value: "A": name is neither a standard finalizer name nor is it fully qualified'
)


@pytest.mark.parametrize(
    ("resource", "on_create", "on_update"),
    [
        (DEPLOYMENTS, 1, 1),
        (DAEMON_SETS, 1, 1),
        (REPLICATION_CONTROLLERS, 1, 1),
        (RESOURCE_QUOTAS, 1, 1),
        (CONFIG_MAPS, 1, 2),
        (DEVICE_CLASSES, 1, 2),
        (LEASES, 0, 0),
        (RUNTIME_CLASSES, 0, 0),
        (VALIDATING_WEBHOOK_CONFIGURATIONS, 0, 0),
        (POD_DISRUPTION_BUDGETS, 0, 0),
    ],
    ids=lambda value: value.names.plural if isinstance(value, Resource) else str(value),
)
def test_an_unqualified_finalizer_is_named_as_often_as_the_kind_is_checked(
    resource: Resource, on_create: int, on_update: int
) -> None:
    assert refusals(resource, NAMED).count(UNQUALIFIED) == on_create
    assert update_refusals(resource, NAMED, {"metadata": {"name": "x"}}).count(UNQUALIFIED) == on_update


async def test_a_generated_name_of_a_device_class_is_checked_and_its_prefix_is_not() -> None:
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    async with whole_server() as api:
        made = await api.request("POST", classes, {"metadata": {"generateName": "a" * 254}, "spec": {}})
        assert made.status == 201
        refused = await api.request("POST", classes, {"metadata": {"name": "a" * 254}, "spec": {}})
        assert refused.json["details"]["causes"][0]["message"] == (
            f'Invalid value: "{"a" * 254}": must be no more than 253 bytes'
        )


async def test_deleting_a_pod_template_answers_the_template() -> None:
    templates = "/api/v1/namespaces/default/podtemplates"
    container = {"name": "c", "image": "i"}
    async with whole_server() as api:
        await api.request(
            "POST", templates, {"metadata": {"name": "t"}, "template": {"spec": {"containers": [container]}}}
        )
        deleted = await api.request("DELETE", f"{templates}/t")
    assert (deleted.status, deleted.json["kind"], deleted.json["metadata"]["name"]) == (200, "PodTemplate", "t")
