"""Service fields that the server fills in: only those that are absent, and in a dry run by what it would take."""

from __future__ import annotations

from whole_server import whole_server

SERVICES = "/api/v1/namespaces/default/services"


async def test_empty_family_policy_differs_from_absent_policy() -> None:
    spec = {"ports": [{"port": 80}], "ipFamilyPolicy": ""}
    async with whole_server() as api:
        refused = await api.request("POST", SERVICES, {"metadata": {"name": "s"}, "spec": spec})
    assert (refused.status, refused.json["message"]) == (
        422,
        'Service "s" is invalid: spec.ipFamilyPolicy: Unsupported value: "": supported values: '
        '"PreferDualStack", "RequireDualStack", "SingleStack"',
    )


async def test_dry_run_makes_up_a_port_above_the_requested_ports() -> None:
    ports = [{"name": "a", "port": 80, "nodePort": -1}, {"name": "b", "port": 81}]
    made = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    async with whole_server() as api:
        tried = await api.request("POST", f"{SERVICES}?dryRun=All", made)
    assert [port["nodePort"] for port in tried.json["spec"]["ports"]] == [-1, 1]
