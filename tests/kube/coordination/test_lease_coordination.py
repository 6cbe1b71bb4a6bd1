"""The fields of coordinated leader election, which v1.36 takes, counts as the sender's and drops."""

from __future__ import annotations

import pytest
from whole_server import whole_server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.mark.parametrize(("method", "path"), [("POST", LEASES), ("PUT", f"{LEASES}/x")])
async def test_they_are_owned_and_not_stored(method: str, path: str) -> None:
    spec = {"strategy": "OldestEmulationVersion", "preferredHolder": "me"}
    async with whole_server() as api:
        made = await api.request(method, f"{path}?fieldManager=m", {"metadata": {"name": "x"}, "spec": spec})
    [entry] = made.json["metadata"]["managedFields"]
    assert (made.status, made.json["spec"]) == (201, {})
    assert entry["fieldsV1"] == {"f:spec": {"f:preferredHolder": {}, "f:strategy": {}}}
