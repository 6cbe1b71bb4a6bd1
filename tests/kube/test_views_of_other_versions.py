"""Tables and metadata of objects in a version that is not stored."""

from __future__ import annotations

from whole_server import whole_server

from pilothouse.testing import API

META = "g=meta.k8s.io;v=v1"
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


async def _create_autoscaler(api: API) -> None:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    pods = {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": cpu}, {"type": "Pods", "pods": pods}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
    }
    path = AUTOSCALERS.format("v2")
    created = await api.request("POST", path, {"metadata": {"name": "a"}, "spec": spec})
    assert created.status == 201, created.body
    current = {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "1"}}
    status = {
        "currentReplicas": 1,
        "desiredReplicas": 1,
        "currentMetrics": [{"type": "Resource", "resource": current}],
        "conditions": [{"type": "AbleToScale", "status": "True"}],
    }
    assert (await api.request("PUT", f"{path}/a/status", created.json | {"status": status})).status == 200


async def test_an_autoscaler_of_v1_is_printed_as_it_is_stored() -> None:
    path = AUTOSCALERS.format("v1")
    async with whole_server() as api:
        await _create_autoscaler(api)
        table = (await api.request("GET", path, accept=f"application/json;as=Table;{META}")).json
        one = (await api.request("GET", f"{path}/a", accept=f"application/json;as=PartialObjectMetadata;{META}")).json
        whole = (await api.request("GET", f"{path}/a")).json
        included = await api.request("GET", f"{path}?includeObject=Object", accept=f"application/json;as=Table;{META}")
    (row,) = table["rows"]
    assert row["cells"][2] == "cpu: 5%/70%, <unknown>/10"
    assert "annotations" not in row["object"]["metadata"]
    assert "annotations" not in one["metadata"]
    assert len(whole["metadata"]["annotations"]) == 4
    assert included.json["rows"][0]["object"] == whole


async def test_an_object_in_a_table_is_shown_as_in_a_list() -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com", "caBundle": ""},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    async with whole_server() as api:
        created = await api.request("POST", path, {"metadata": {"name": "a"}, "webhooks": [hook]})
        assert created.status == 201, created.body
        query = "?includeObject=Object"
        table = (await api.request("GET", path + query, accept=f"application/json;as=Table;{META}")).json
        one = (await api.request("GET", f"{path}/a{query}", accept=f"application/json;as=Table;{META}")).json
    for shown in (table, one):
        assert "caBundle" not in shown["rows"][0]["object"]["webhooks"][0]["clientConfig"]
