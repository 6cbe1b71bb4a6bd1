"""What Endpoints may say."""

from __future__ import annotations

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.core.endpoints import ENDPOINTS, ENDPOINTS_DEPRECATION
from pilothouse.machinery.objects import Json


def subset(*ips: str, ports: tuple[int, ...] = (80,)) -> Json:
    named = [{"port": port, "name": f"p{port}"} for port in ports]
    return {"addresses": [{"ip": ip} for ip in ips], "ports": named}


@pytest.mark.parametrize(
    ("made", "errors"),
    [
        (subset("10.0.0.1"), []),
        ({}, ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]),
        ({"notReadyAddresses": [{"ip": "10.0.0.1", "nodeName": "N"}]}, ["subsets[0].notReadyAddresses[0].nodeName"]),
        (subset("fe80::1"), ['subsets[0].addresses[0].ip: Invalid value: "fe80::1": may not be in the link-local']),
        (subset("10.0.0.1", ports=(0,)), ["subsets[0].ports[0].port: Invalid value: 0"]),
    ],
)
def test_new_endpoints_are_rejected_with_exact_errors(made: Json, errors: list[str]) -> None:
    found = refusals(ENDPOINTS, {"subsets": [made]})
    assert [error[: len(wanted)] for error, wanted in zip(found, errors, strict=True)] == errors


def test_subsets_that_were_stored_under_older_rules_may_stay_as_they_are() -> None:
    broken = {"subsets": [subset("010.0.0.1")]}
    assert update_refusals(ENDPOINTS, broken, broken) == []
    assert len(update_refusals(ENDPOINTS, {"subsets": [subset("010.0.0.1", "1.1.1.1")]}, broken)) == 1


@pytest.mark.parametrize(
    ("subsets", "shown"),
    [
        ([], "<none>"),
        ([{"addresses": [{"ip": "10.0.0.1"}]}], "10.0.0.1"),
        ([subset("10.0.0.1", "fd00::1")], "10.0.0.1:80,[fd00::1]:80"),
        ([subset("10.0.0.1", "10.0.0.2", ports=(1, 2))], "10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more..."),
    ],
)
def test_a_table_shows_three_endpoints(subsets: list[Json], shown: str) -> None:
    assert ENDPOINTS.columns[1].cell(decoded(ENDPOINTS, {"subsets": subsets})) == shown


def test_deprecation_warning_names_the_replacement() -> None:
    warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert ENDPOINTS_DEPRECATION.warning(ENDPOINTS.kind) == warning
