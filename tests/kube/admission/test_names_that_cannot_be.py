"""Plugins look up what objects name, and a name that no object can have is answered as upstream's lookups do."""

from __future__ import annotations

import pytest
from whole_server import whole_server

from pilothouse.client import Json

PODS = "/api/v1/namespaces/default/pods"


def pod(**spec: str) -> Json:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@pytest.mark.parametrize("node", ["a/b", "a%b", ".."])
async def test_a_binding_to_such_a_node_is_about_its_pod(node: str) -> None:
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
    async with whole_server() as api:
        refused = await api.request("POST", f"{PODS}/p/binding", binding)
    assert (refused.status, refused.json["message"]) == (404, 'pods "p" not found')


async def test_a_runtime_class_is_asked_for_by_a_client_that_refuses() -> None:
    async with whole_server() as api:
        refused = await api.request("POST", PODS, pod(runtimeClassName="a%b"))
    assert (refused.status, refused.json["message"]) == (500, "invalid resource name \"a%b\": [may not contain '%']")


async def test_a_service_account_is_asked_for_by_a_client_that_refuses() -> None:
    async with whole_server(disable_admission_plugins="") as api:
        refused = await api.request("POST", PODS, pod(serviceAccountName="a/b"))
    why = "invalid resource name \"a/b\": [may not contain '/']"
    assert (refused.status, refused.json["message"]) == (
        403,
        f'pods "p" is forbidden: error looking up service account default/a/b: {why}',
    )
