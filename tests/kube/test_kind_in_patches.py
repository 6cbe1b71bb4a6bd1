"""A strategic merge patch that changes or removes the kind."""

from __future__ import annotations

import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}


@pytest.mark.parametrize("dry_run", ["", "?dryRun=All"])
async def test_the_answer_has_the_kind_of_the_resource(dry_run: str) -> None:
    async with whole_server() as api:
        await api.request("POST", PODS, POD)
        for change in ({"kind": None}, {"$retainKeys": ["metadata", "spec"]}):
            patch = {"metadata": {"labels": {"changed": str(len(change))}}, **change}
            patched = await api.request("PATCH", f"{PODS}/a{dry_run}", patch, media=STRATEGIC)
            assert (patched.status, patched.json.get("kind"), patched.json.get("apiVersion")) == (200, "Pod", "v1")
