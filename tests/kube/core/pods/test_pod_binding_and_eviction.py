"""Binding pods to nodes and evicting them, through a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sample_pods import pod
from whole_server import whole_server

from pilothouse.kube.core.pods.disruption_budgets import check_disruption_allowed
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.testing import API, Answer

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as started:
        yield started


async def create(server: API, name: str = "p", **spec: Any) -> Json:
    answer = await server.request("POST", PODS, pod(meta={"name": name, "labels": {"app": "a"}}, **spec))
    assert answer.status == 201, answer.body
    made = answer.json
    assert isinstance(made, dict)
    return made


async def bind(server: API, name: str = "p", node: str = "n", **meta: Any) -> Answer:
    binding = {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": node}}
    return await server.request("POST", f"{PODS}/{name}/binding", binding)


async def get(server: API, name: str = "p") -> Json:
    found = (await server.request("GET", f"{PODS}/{name}")).json
    assert isinstance(found, dict)
    return found


async def test_a_binding_gives_a_pod_its_node(server: API) -> None:
    await create(server)
    answer = await bind(server, annotations={"why": "best"}, labels={"zone": "z"})
    assert (answer.status, answer.json["status"]) == (201, "Success")
    bound = await get(server)
    assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("n", {"app": "a", "zone": "z"})
    assert bound["metadata"]["annotations"] == {"why": "best"}
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_a_dry_run_binds_nothing(server: API) -> None:
    await create(server)
    binding = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert (await server.request("POST", f"{PODS}/p/binding?dryRun=All", binding)).status == 201
    assert "nodeName" not in (await get(server))["spec"]


async def test_a_pod_is_bound_once(server: API) -> None:
    await create(server, nodeName="n")
    answer = await bind(server, node="m")
    assert answer.status == 409
    assert answer.json["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    )


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
async def test_binding_preconditions_are_checked(server: API, field: str) -> None:
    await create(server)
    answer = await bind(server, **{field: "999999"})
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert "Precondition failed" in answer.json["message"]


async def test_terminating_or_gated_pod_is_not_bound(server: API) -> None:
    await create(server, "gated", schedulingGates=[{"name": "g"}])
    assert "has non-empty .spec.schedulingGates" in (await bind(server, "gated")).json["message"]
    made = pod(meta={"name": "going", "finalizers": ["example.com/f"]})
    assert (await server.request("POST", PODS, made)).status == 201
    assert (await server.request("DELETE", f"{PODS}/going")).status == 200
    assert "is being deleted, cannot be assigned to a host" in (await bind(server, "going")).json["message"]


async def evict(server: API, name: str = "p", query: str = "", **fields: Any) -> Answer:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **fields}
    return await server.request("POST", f"{PODS}/{name}/eviction{query}", eviction)


async def run(server: API, *, ready: bool = True, **meta: Any) -> None:
    """A pod that runs on a node."""
    await create(server, nodeName="n")
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    patch = {"status": {"phase": "Running", "conditions": conditions}}
    answer = await server.request("PATCH", f"{PODS}/p/status", patch, media="application/merge-patch+json")
    assert answer.status == 200, answer.body


async def guard(server: API, name: str = "b", policy: str | None = None, **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    spec |= {"unhealthyPodEvictionPolicy": policy} if policy else {}
    answer = await server.request("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
    assert answer.status == 201, answer.body
    patch = {"status": {"observedGeneration": 1, **status}}
    await server.request("PATCH", f"{BUDGETS}/{name}/status", patch, media="application/merge-patch+json")


async def test_pod_that_is_not_running_is_evicted_at_once(server: API) -> None:
    await create(server)
    await guard(server, disruptionsAllowed=0)
    assert (await evict(server)).status == 201
    assert (await server.request("GET", f"{PODS}/p")).status == 404


async def test_an_eviction_may_come_in_its_beta_version(server: API) -> None:
    await create(server)
    assert (await evict(server, apiVersion="policy/v1beta1")).status == 201
    assert (await evict(server, apiVersion="policy/v2")).status == 400


async def test_eviction_is_counted_in_the_budget(server: API) -> None:
    await run(server)
    await guard(server, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    answer = await evict(server, deleteOptions={"gracePeriodSeconds": 7})
    assert (answer.status, answer.json["status"]) == (201, "Success")
    going = await get(server)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7
    reasons = {each["type"]: each.get("reason") for each in going["status"]["conditions"]}
    assert reasons == {"Ready": None, "DisruptionTarget": "EvictionByEvictionAPI"}
    spent = (await server.request("GET", f"{BUDGETS}/b")).json["status"]
    assert (spent["disruptionsAllowed"], list(spent["disruptedPods"])) == (0, ["p"])
    assert [(c["type"], c["status"], c["reason"]) for c in spent["conditions"]] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]


async def test_status_of_the_budget_belongs_to_the_server_after_an_eviction(server: API) -> None:
    await run(server)
    await guard(server, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert (await evict(server)).status == 201
    entries = (await server.request("GET", f"{BUDGETS}/b")).json["metadata"]["managedFields"]
    (own,) = [entry for entry in entries if entry["manager"] == "kube-apiserver"]
    assert (own["operation"], own["apiVersion"], own["subresource"]) == ("Update", "policy/v1", "status")
    condition: Json = {f"f:{name}": {} for name in ("lastTransitionTime", "message", "observedGeneration", "reason")}
    condition |= {"f:status": {}, "f:type": {}}
    assert own["fieldsV1"] == {
        "f:status": {
            "f:conditions": {".": {}, 'k:{"type":"DisruptionAllowed"}': {".": {}, **condition}},
            "f:disruptedPods": {".": {}, "f:p": {}},
            "f:disruptionsAllowed": {},
        }
    }
    others = [entry["fieldsV1"] for entry in entries if entry["manager"] != "kube-apiserver"]
    assert all("f:disruptionsAllowed" not in fields.get("f:status", {}) for fields in others)


async def test_a_dry_run_evicts_nothing_and_spends_nothing(server: API) -> None:
    await run(server)
    await guard(server, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert (await evict(server, query="?dryRun=All")).status == 201
    assert "deletionTimestamp" not in (await get(server))["metadata"]
    assert (await server.request("GET", f"{BUDGETS}/b")).json["status"]["disruptionsAllowed"] == 1


async def test_an_eviction_waits_for_the_budget(server: API) -> None:
    await run(server)
    await guard(server, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    answer = await evict(server)
    assert answer.status == 429
    assert answer.json["details"]["causes"] == [
        {"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}
    ]


async def test_eviction_with_two_budgets_fails(server: API) -> None:
    await run(server)
    await guard(server, "a", disruptionsAllowed=1)
    await guard(server, "b", disruptionsAllowed=1)
    answer = await evict(server)
    assert (answer.status, answer.json["code"], answer.json["status"]) == (500, 500, "Failure")


@pytest.mark.parametrize(
    ("policy", "healthy", "status"), [("AlwaysAllow", 0, 201), ("IfHealthyBudget", 1, 201), (None, 0, 429)]
)
async def test_unhealthy_pod_may_be_evicted(server: API, policy: str | None, healthy: int, status: int) -> None:
    await run(server, ready=False)
    await guard(server, policy=policy, disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=1)
    assert (await evict(server)).status == status


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"metadata": {"name": "q"}}, 400, "name in URL does not match name in Eviction object"),
        (
            {"deleteOptions": {"ignoreStoreReadErrorWithClusterBreakingPotential": True}},
            422,
            'Eviction.policy "p" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid '
            "value: true: can not be set for pod eviction, try after removing the option",
        ),
        (
            {"deleteOptions": {"propagationPolicy": "Odd"}},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Odd"',
        ),
        (
            {"deleteOptions": {"dryRun": ["x"]}},
            422,
            'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"',
        ),
        (
            {"deleteOptions": {"preconditions": {"uid": "x"}}},
            409,
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (x) does not '
            "match the UID in record",
        ),
    ],
)
async def test_invalid_evictions_are_rejected(server: API, fields: Json, status: int, message: str) -> None:
    await create(server)
    answer = await evict(server, **fields)
    assert answer.status == status
    assert answer.json["message"].startswith(message)


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        ({"observedGeneration": 1}, 429, "is still being processed by the server"),
        ({"disruptionsAllowed": -1}, 403, "pdb disruptions allowed is negative"),
        ({"disruptionsAllowed": 1, "disruptedPods": dict.fromkeys(map(str, range(2001)), "")}, 403, "map too big"),
        (
            {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no"}]},
            429,
            "because it failed sync: no",
        ),
        (
            {
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "Other", "message": "no"}],
            },
            429,
            "does not allow evicting pods currently (Other): no",
        ),
        ({"currentHealthy": 2, "desiredHealthy": 1}, 429, "does not allow evicting pods currently"),
    ],
)
def test_exhausted_budget_reports_the_reason(status: Json, code: int, text: str) -> None:
    budget = {"metadata": {"name": "b", "generation": 2}, "status": {"observedGeneration": 2, **status}}
    with pytest.raises(StatusError) as caught:
        check_disruption_allowed(budget)
    assert caught.value.code == code
    assert text in str(caught.value.message) + str(caught.value.details)
