"""node-ipam-controller: each node has a range of addresses that no other has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed

from pilothouse.controllers.config import NodeIPAMConfig
from pilothouse.controllers.nodeipam.cidr_set import CidrSet, CIDRsExhausted, cidr_sets
from pilothouse.controlplane.controller_config import node_ipam_config, node_lifecycle_config
from pilothouse.controlplane.options.single_controllers import NodeControllerOptions

CONFIG = NodeIPAMConfig(
    allocate_node_cidrs=True, cluster_cidrs=("10.8.0.0/22", "2001:db8::/62"), service_cidrs=("10.8.0.0/24",)
)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield replace(server, config=replace(server.config, node_ipam=CONFIG))


async def test_each_node_gets_a_range_of_each_family_that_no_other_has(server: ControlledServer) -> None:
    nodes = server.client.resource("v1", "nodes")
    taken = ["10.8.1.0/24", "2001:db8::/64"]
    await nodes.create({"metadata": {"name": "old"}, "spec": {"podCIDR": taken[0], "podCIDRs": taken}})
    async with managed(server, "nodeipam"):
        await nodes.create({"metadata": {"name": "a"}})
        found = await until(nodes, "a", lambda node: node["spec"].get("podCIDRs"))
        assert found["spec"]["podCIDRs"] == ["10.8.2.0/24", "2001:db8:0:1::/64"]
        assert found["spec"]["podCIDR"] == "10.8.2.0/24"
        await nodes.create({"metadata": {"name": "b"}})
        await until(nodes, "b", lambda node: node["spec"].get("podCIDRs"))
        await nodes.create({"metadata": {"name": "c"}})
        events = server.client.resource("v1", "events", namespace="default")
        told = await until_all(events, lambda items: any(each["reason"] == "CIDRNotAvailable" for each in items))
        assert {each["source"]["component"] for each in told} == {"cidrAllocator"}
        await nodes.delete("old")
        assert (await until(nodes, "c", lambda node: node["spec"].get("podCIDR")))["spec"]["podCIDR"] == taken[0]


def test_parts_are_handed_out_in_turn() -> None:
    parts = CidrSet("192.0.2.0/28", 30)
    assert [str(parts.allocate()) for _ in range(3)] == ["192.0.2.0/30", "192.0.2.4/30", "192.0.2.8/30"]
    parts.release(ip_network("192.0.2.0/30"))
    assert str(parts.allocate()) == "192.0.2.12/30"
    parts.occupy(ip_network("192.0.2.0/29"))
    with pytest.raises(CIDRsExhausted):
        parts.allocate()
    parts.occupy(ip_network("198.51.100.0/24"))
    parts.release(ip_network("192.0.0.0/16"))
    assert str(parts.allocate()) == "192.0.2.0/30"


def test_a_range_that_can_not_be_divided_is_refused() -> None:
    wrong = NodeControllerOptions(allocate_node_cidrs=True, cluster_cidr="10.0.0.0/25")
    assert [*wrong.validate()] == ["cluster-cidr: 10.0.0.0/25 can not be divided into ranges with a mask of 24 bits"]
    missing = NodeControllerOptions(allocate_node_cidrs=True)
    assert [*missing.validate()] == ["--cluster-cidr must be set with --allocate-node-cidrs"]
    both = NodeControllerOptions(cluster_cidr="10.0.0.0/16,2001:db8::/56")
    assert len(cidr_sets(node_ipam_config(both))) == 2
    hasty = NodeControllerOptions(node_monitor_period=60.0)
    assert [*hasty.validate()] == ["node-monitor-grace-period must be greater than node-monitor-period"]
    assert node_lifecycle_config(hasty).node_monitor_period == 60.0
