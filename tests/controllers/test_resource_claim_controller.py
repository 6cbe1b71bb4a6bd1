"""resourceclaim-controller: claims of devices that pods have templates for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until, until_all, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.controllers.resourceclaim.pod_syncs import FINALIZER, new_claim
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, uid_of

SPEC: Json = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION: Json = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "g"}]}}


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def a_pod(name: str, template: str) -> Json:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "dev"}]}}
    claims = [{"name": "dev", "resourceClaimTemplateName": template}]
    return {"metadata": {"name": name}, "spec": {"containers": [container], "resourceClaims": claims}}


async def test_claims_are_made_from_templates_and_given_back_by_pods_that_are_done(server: ControlledServer) -> None:
    pods = server.client.resource("v1", "pods", namespace="default")
    claims = server.client.resource("resource.k8s.io/v1", "resourceclaims", namespace="default")
    templates = server.client.resource("resource.k8s.io/v1", "resourceclaimtemplates", namespace="default")
    await templates.create({"metadata": {"name": "t"}, "spec": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}})
    async with managed(server, "resourceclaim-controller", "garbage-collector-controller"):
        await pods.create(a_pod("p", "t"))
        pod = await until(pods, "p", lambda found: found["status"].get("resourceClaimStatuses"))
        ((name, made),) = (each.values() for each in pod["status"]["resourceClaimStatuses"])
        claim = await claims.get(made)
        (owner,) = metadata(claim)["ownerReferences"]
        assert (name, owner["uid"], owner["controller"]) == ("dev", uid_of(pod), True)
        assert annotations_of(claim) == {"resource.kubernetes.io/pod-claim-name": "dev"}
        assert (made.startswith("p-dev-"), labels_of(claim)) == (True, {"a": "b"})

        await claims.patch(made, {"metadata": {"finalizers": [FINALIZER]}})
        consumer = {"resource": "pods", "name": "p", "uid": uid_of(pod)}
        status = {"allocation": ALLOCATION, "reservedFor": [consumer]}
        await claims.patch(made, {"status": status}, subresource="status")
        await pods.patch("p", {"status": {"phase": "Succeeded"}}, subresource="status")
        await until_gone(claims, made)

        await pods.create(a_pod("late", "missing"))
        events = server.client.resource("v1", "events", namespace="default")
        found = await until_all(events, lambda items: any("missing" in each["message"] for each in items))
        (event,) = (each for each in found if "missing" in each["message"])
        assert (event["reason"], event["source"]["component"]) == ("FailedResourceClaimCreation", "resource_claim")
        assert event["message"] == (
            'PodResourceClaim dev: resource claim template "missing":'
            ' resourceclaimtemplate.resource.k8s.io "missing" not found'
        )
        await templates.create({"metadata": {"name": "missing"}, "spec": {"spec": SPEC}})
        late = await until(pods, "late", lambda found: found["status"].get("resourceClaimStatuses"))
        (again,) = (each["resourceClaimName"] for each in late["status"]["resourceClaimStatuses"])
        await claims.patch(again, {"metadata": {"finalizers": [FINALIZER]}})
        await claims.patch(again, {"status": {"allocation": ALLOCATION}}, subresource="status")
        binding = {"metadata": {"name": "late"}, "target": {"kind": "Node", "name": "n"}}
        await pods.create(binding, name="late", subresource="binding")
        held = await until(claims, again, lambda found: found["status"].get("reservedFor"))
        assert held["status"]["reservedFor"] == [{"resource": "pods", "name": "late", "uid": uid_of(late)}]


def test_long_names_are_cut_in_proportion() -> None:
    pod = {"metadata": {"name": "p" * 60, "uid": "u"}}
    claim = new_claim(pod, "c" * 40, {"spec": {"spec": {}}})
    assert metadata(claim)["generateName"] == "p" * (60 * 57 // 102) + "-" + "c" * (40 * 57 // 102)
    assert name_of(claim) == ""
