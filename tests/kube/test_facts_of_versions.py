"""Servers of other Kubernetes versions have the facts that real servers of these versions have."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from recorded import ARCHIVES, recorded

sys.path.append(str(ARCHIVES))

from facts import facts_of
from replay import server_of

VERSIONS = sorted(file.name.removeprefix("differences-").removesuffix(".tar.xz") for file in ARCHIVES.glob("diff*.xz"))
NOT_SERVED = "[+]poststarthook/peer-endpoint-reconciler-controller ok"
"""Check of the proxy to peers, which is not implemented."""

Compared = tuple[dict[str, Any], dict[str, Any]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=VERSIONS)
def compared(request: pytest.FixtureRequest) -> Compared:
    """Facts of a server here and of the real server, by file name."""
    folder = recorded("facts", request.param)
    with server_of(request.param) as call:
        found = facts_of(call)
    return found, {name: json.loads((folder / name).read_text()) for name in found}


def _named(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each.get("namespace", ""), each["name"]): each for each in objects}


@pytest.mark.parametrize("name", ["apiservices.json", "table-columns.json", "openapi-v3-index.json"])
def test_facts_are_equal(name: str, compared: Compared) -> None:
    found, wanted = compared
    assert found[name] == wanted[name]


@pytest.mark.parametrize("name", ["rbac-bootstrap.json", "flowcontrol-bootstrap.json"])
def test_bootstrap_objects_are_equal(name: str, compared: Compared) -> None:
    found, wanted = ({plural: _named(objects) for plural, objects in each[name].items()} for each in compared)
    assert found == wanted


def test_feature_gates_are_equal_except_for_the_proxy_to_peers(compared: Compared) -> None:
    found, wanted = (each["feature-gates.json"] for each in compared)
    differing = {name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)}
    assert differing <= {"UnknownVersionInteroperabilityProxy"}


def test_health_checks_are_equal_except_for_the_proxy_to_peers(compared: Compared) -> None:
    found, wanted = (each["health-checks.json"] for each in compared)
    assert found == {path: [line for line in lines if line != NOT_SERVED] for path, lines in wanted.items()}
