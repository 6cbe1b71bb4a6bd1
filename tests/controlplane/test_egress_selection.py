"""EgressSelectorConfiguration: direct connections are there, proxies are refused, and issuers name networks in it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pilothouse.client import Json
from pilothouse.controlplane.authentication.configuration import read_authentication_configuration
from pilothouse.controlplane.egress import read_egress_selections
from pilothouse.controlplane.options.completion import complete
from pilothouse.controlplane.options.options import Options

TCP: Json = {"tcp": {"url": "http://127.0.0.1:1"}}


def configuration(*selections: Json) -> bytes:
    kind = {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration"}
    return orjson.dumps({**kind, "egressSelections": selections})


def selection(name: str, protocol: str, transport: Json | None = None) -> Json:
    return {"name": name, "connection": {"proxyProtocol": protocol, "transport": transport}}


def test_networks_that_are_reached_directly_are_known() -> None:
    data = configuration(selection("Cluster", "Direct"), selection("controlplane", "Direct"))
    assert read_egress_selections(data) == {"cluster", "controlplane"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (selection("cluster", "HTTPConnect", TCP), "proxies are not supported by this version: HTTPConnect of cluster"),
        (selection("cluster", "Direct", TCP), "config must be absent for direct connect"),
        (selection("cluster", "HTTPConnect"), "service.connection.transport: Required value: transport must be set"),
        (
            selection("cluster", "Odd"),
            'service.connection.protocol: Unsupported value: "Odd": supported values: "Direct", "HTTPConnect", "GRPC"',
        ),
        (
            selection("nodes", "Direct"),
            'service.connection: Unsupported value: "nodes": supported values: "cluster", "controlplane", "etcd"',
        ),
    ],
)
def test_what_can_not_be_had_is_refused(given: Json, why: str, tmp_path: Path) -> None:
    file = tmp_path / "egress.json"
    file.write_bytes(configuration(given))
    [problem] = complete(Options.parse([f"--egress-selector-config-file={file}"])).egress_selector.validate()
    assert why in problem


@pytest.mark.parametrize(
    ("selector", "egress", "why"),
    [
        ("cluster", frozenset({"cluster"}), ""),
        ("cluster", None, 'oidc: egress lookup required with egress selector type "cluster"'),
        ("cluster", frozenset({"etcd"}), 'oidc: egress lookup for "cluster" is not configured'),
        ("etcd", frozenset({"etcd"}), "egress selector must be either controlplane or cluster"),
    ],
)
def test_the_network_of_an_issuer_must_be_configured(selector: str, egress: frozenset[str] | None, why: str) -> None:
    issuer = {"url": "https://issuer", "audiences": ["a"], "egressSelectorType": selector}
    mappings = {"username": {"claim": "sub", "prefix": ""}}
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}
    data = orjson.dumps({**kind, "jwt": [{"issuer": issuer, "claimMappings": mappings}]})
    if not why:
        read_authentication_configuration(data, disallowed_issuers=(), egress=egress)
        return
    with pytest.raises(ValueError) as refused:
        read_authentication_configuration(data, disallowed_issuers=(), egress=egress)
    assert why in str(refused.value)
