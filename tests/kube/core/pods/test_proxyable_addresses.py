"""Proxies lead out of this machine, however its own addresses are written, and whatever a name means later."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubelet_double import listening
from sample_pods import container, pod
from tls_backends import own_address
from whole_server import whole_server

from pilothouse.kube.core.pods.connect.locations import proxyable_address
from pilothouse.machinery.errors import BadRequest
from pilothouse.testing import API

MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CARRIERS = ["::ffff:0:0", "::", "64:ff9b::", "64:ff9b:1::"]

special = st.one_of(
    st.ip_addresses(network="127.0.0.0/8"),
    st.ip_addresses(network="169.254.0.0/16"),
    st.ip_addresses(network="224.0.0.0/4"),
    st.sampled_from([IPv4Address("0.0.0.0"), IPv4Address("255.255.255.255")]),
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as started:
        yield started


async def put_pod(server: API, address: str) -> None:
    await server.request("POST", PODS, pod(container(name="c"), meta={"name": "p"}))
    patched = await server.request("PATCH", f"{PODS}/p/status", {"status": {"podIP": address}}, media=MERGE)
    assert patched.status == 200, patched.body


async def put_node(server: API, kind: str, address: str) -> None:
    await server.request("POST", NODES, {"metadata": {"name": "n"}})
    status = {"status": {"addresses": [{"type": kind, "address": address}]}}
    patched = await server.request("PATCH", f"{NODES}/n/status", status, media=MERGE)
    assert patched.status == 200, patched.body


@given(special, st.sampled_from(CARRIERS))
def test_address_with_embedded_special_address_is_special(carried: IPv4Address, carrier: str) -> None:
    for text in (str(carried), str(IPv6Address(int(IPv6Address(carrier)) | int(carried))), f"{carrier[:-1]}:{carried}"):
        with pytest.raises(BadRequest, match="address not allowed"):
            proxyable_address(text)


@pytest.mark.parametrize(
    "address",
    ["", "x", "::1", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "2002:7f00:1::", "127.1", "2130706433", "::1%lo"],
)
def test_special_or_invalid_address_is_rejected(address: str) -> None:
    with pytest.raises(BadRequest, match="address not allowed"):
        proxyable_address(address)


@pytest.mark.parametrize(
    ("address", "dialed"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0177.0.0.1", "177.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("64:ff9b::a00:1", "64:ff9b::a00:1"),
    ],
)
def test_dialed_address_is_the_validated_address(address: str, dialed: str) -> None:
    assert proxyable_address(address) == dialed


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "0177.0.0.1", "127.1", "2130706433", "localhost"])
async def test_node_with_a_local_host_name_is_rejected(server: API, address: str) -> None:
    async with listening("127.0.0.1") as local:
        await put_node(server, "InternalIP", address)
        answer = await server.request("GET", f"{NODES}/n:{local.port}/proxy/x")
        assert (answer.status, answer.json["message"]) == (400, "address not allowed")
        assert local.heard == []


async def test_pod_with_embedded_local_address_is_rejected(server: API) -> None:
    await put_pod(server, "64:ff9b::127.0.0.1")
    answer = await server.request("GET", f"{PODS}/p:1/proxy/x")
    assert (answer.status, answer.json["message"]) == (400, "address not allowed")


async def test_checked_host_name_is_resolved_once(server: API, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = own_address()
    if not outside:
        pytest.skip("this machine has only a loopback address")
    await put_node(server, "Hostname", "rebound.test")
    answers = [outside]
    real = socket.getaddrinfo

    def look_up(host: str, *args: Any, **options: Any) -> Any:
        """First the address that passes the check, from then on this machine's own."""
        if host != "rebound.test":
            return real(host, *args, **options)
        return real(answers.pop() if answers else "127.0.0.1", *args, **options)

    async with listening(outside) as node:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        answer = await server.request("GET", f"{NODES}/n:{node.port}/proxy/x", host="as.asked.for")
        assert (answer.body, answers) == (b"GET /x ", [])
        assert node.heard[0].headers["host"] == "as.asked.for"
