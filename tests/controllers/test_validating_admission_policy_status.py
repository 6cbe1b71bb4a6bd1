"""The status controller of validating admission policies, on a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from admission_policies import policy
from controllers_on_a_server import running
from patience import PATIENCE
from prometheus_client import CollectorRegistry
from whole_server import whole_server

from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json

NAME = "validatingadmissionpolicy-status-controller"
DEPLOYMENTS = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}]


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with whole_server(tmp_path) as server:
        yield server.client(in_process=True)


async def until_observed(client: Client, generation: int) -> Json:
    policies = client.resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
    watch = await policies.watch(ListOptions(timeout_seconds=PATIENCE))
    async with watch:
        async for event in watch:
            status: Json = event.object.get("status") or {}
            if status.get("observedGeneration") == generation:
                return status
    raise AssertionError("the policy was never checked")


async def test_each_policy_generation_is_checked_against_its_resource_types(client: Client) -> None:
    policies = client.resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
    wrong = [{"expression": "object.spec.replicas > 1"}, {"expression": "object.spec.replica > 1"}]
    async with running(ControllerManager(client, enabled([NAME]), registry=CollectorRegistry())):
        made = await policies.create(policy("p", rules=DEPLOYMENTS, validations=wrong))
        status = await until_observed(client, 1)
        assert status["typeChecking"]["expressionWarnings"] == [
            {
                "fieldRef": "spec.validations[1].expression",
                "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n"
                " | object.spec.replica > 1\n | ...........^\n",
            }
        ]
        right = {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}}
        await policies.patch(made["metadata"]["name"], right)
        assert "expressionWarnings" not in (await until_observed(client, 2)).get("typeChecking", {})
