"""An object that is not there yet has neither a version nor a uid, and who names one is told so."""

from __future__ import annotations

import pytest
from whole_server import CONFIG_MAPS, whole_server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def named(**meta: str) -> dict[str, object]:
    return {"metadata": {"name": "x", **meta}}


async def test_a_version_is_refused_by_the_store_and_not_by_a_dry_run() -> None:
    async with whole_server() as api:
        refused = await api.request("POST", CONFIG_MAPS, named(resourceVersion="7"))
        tried = await api.request("POST", f"{CONFIG_MAPS}?dryRun=All", named(resourceVersion="7"))
        await api.request("POST", CONFIG_MAPS, named())
        clashed = await api.request("POST", f"{CONFIG_MAPS}?dryRun=All", named(resourceVersion="7"))
    assert (refused.status, refused.json["message"]) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )
    assert (tried.status, tried.json["metadata"]["resourceVersion"]) == (201, "7")
    assert (clashed.status, clashed.json["message"]) == (409, 'configmaps "x" already exists')


@pytest.mark.parametrize("version", ["0", "none"])
async def test_text_that_names_no_version_is_dropped(version: str) -> None:
    async with whole_server() as api:
        made = await api.request("POST", CONFIG_MAPS, named(resourceVersion=version))
    assert (made.status, int(made.json["metadata"]["resourceVersion"]) > 0) == (201, True)


@pytest.mark.parametrize(("query", "root"), [("", "/registry"), ("?dryRun=All", "")])
async def test_a_put_that_creates_names_no_uid(query: str, root: str) -> None:
    async with whole_server() as api:
        refused = await api.request("PUT", f"{LEASES}/x{query}", named(uid="u"))
        absent = await api.request("PUT", f"{CONFIG_MAPS}/x{query}", named(uid="u"))
    why = "Precondition failed: UID in precondition: u, UID in object meta: "
    assert (refused.status, refused.json["reason"], refused.json["message"]) == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on leases.coordination.k8s.io "x": StorageError: invalid object, Code: 4, '
        f"Key: {root}/leases/default/x, ResourceVersion: 0, AdditionalErrorMsg: {why}",
    )
    assert (absent.status, absent.json["message"]) == (404, 'configmaps "x" not found')
