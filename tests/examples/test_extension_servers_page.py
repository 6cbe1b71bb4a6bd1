"""docs/how-to/extension-servers.md: its program runs, and its manifests let it run in a cluster."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from extension_server import ExtensionServer
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT, PATIENCE

from pilothouse.testing import BlockingAPI, Server

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "extension-servers.md").read_text()
PROGRAM = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
MANIFESTS = "\n---\n".join(re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
ACCOUNT = "system:serviceaccount:harbor:harbor-apiserver"
BOAT = {"apiVersion": "harbor.example.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"color": "red"}}


def test_the_program_passes_its_own_test() -> None:
    module = ModuleType("extension_servers_page")
    sys.modules[module.__name__] = module  # annotations are looked up there
    exec(compile(PROGRAM, "docs/how-to/extension-servers.md", "exec"), vars(module))
    module.test_a_boat_knows_its_sail_area()


def test_the_page_uses_public_names_only() -> None:
    imported = set(re.findall(r"^from (pilothouse\S*) import", PROGRAM, re.MULTILINE))
    assert imported == {"pilothouse.builder"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[BlockingAPI]:
    with Server(authorization_mode="RBAC") as api:
        yield api


@pytest.fixture(scope="module")
def kubectl(cluster: BlockingAPI, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    if BINARY is None:
        pytest.skip(MISSING)
    made = Kubectl(Path(cluster.kubeconfig), tmp_path_factory.mktemp("home"))
    made("apply", "-f", "-", stdin=MANIFESTS)
    return made


def test_the_roles_let_the_server_do_what_it_must_in_a_pod(kubectl: Kubectl) -> None:
    allowed = [
        ("create", "tokenreviews.authentication.k8s.io"),
        ("create", "subjectaccessreviews.authorization.k8s.io"),
        ("get", "namespaces"),
        ("create", "events"),
        ("patch", "apiservices.apiregistration.k8s.io"),
        ("create", "secrets", "-n", "harbor"),
        ("update", "leases.coordination.k8s.io", "-n", "harbor"),
    ]
    for words in allowed:
        assert kubectl("auth", "can-i", *words, f"--as={ACCOUNT}") == "yes\n", words


def test_a_server_with_the_account_of_the_page_serves_its_group(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "harbor.py").write_text(PROGRAM)
    kubeconfig = _kubeconfig_of_the_account(kubectl, tmp_path / "account.kubeconfig")
    server = ExtensionServer(kubeconfig, tmp_path / "data", example=str(tmp_path / "harbor.py"))
    try:
        kubectl("apply", "-f", str(server.manifest))
        kubectl("wait", "--for=condition=Available", "apiservice/v1.harbor.example.com", KUBECTL_TIMEOUT)
        sails = [{"name": "main", "area": 12}]
        boat = json.dumps({**BOAT, "spec": {"color": "red", "sails": sails}})
        _eventually(kubectl, "create", "-f", "-", stdin=boat)
        _eventually(kubectl, "wait", "boat/a", "--for=jsonpath={.status.sailArea}=12", KUBECTL_TIMEOUT)
        assert kubectl("get", "boats", "-o", "wide").split()[:7] == ["NAME", "COLOR", "AREA", "AGE", "a", "red", "12"]
        shown = kubectl("get", "apiservices", "v1.harbor.example.com", "--no-headers").split()
        assert shown[:3] == ["v1.harbor.example.com", "harbor/harbor-apiserver", "True"]
        assert "Forbidden" in kubectl.fails("get", "boats", "--as=ann")
        kubectl("create", "clusterrole", "sailor", "--verb=get,list", "--resource=boats.harbor.example.com")
        kubectl("create", "clusterrolebinding", "sailor", "--clusterrole=sailor", "--user=bob")
        assert "a" in kubectl("get", "boats", "--as=bob")
    finally:
        server.kill()


def _kubeconfig_of_the_account(kubectl: Kubectl, file: Path) -> Path:
    config = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": kubectl("create", "token", "harbor-apiserver", "-n", "harbor").strip()}
    file.write_text(json.dumps(config))
    return file


def _eventually(kubectl: Kubectl, *words: str, stdin: str = "") -> None:
    """Discovery tells of the group a moment after it is available."""
    deadline = time.monotonic() + PATIENCE
    while kubectl.run(*words, stdin=stdin).returncode != 0:
        assert time.monotonic() < deadline, kubectl.run(*words, stdin=stdin).stderr
