"""examples/flunders.py as a program that registers itself, used through the real kubectl as any resource is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from extension_server import ExtensionServer
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT, PATIENCE
from serving_process import ServeProcess

API_SERVICE = "v1alpha1.wardle.example.com"
NAMED = "flunder.wardle.example.com"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    if BINARY is None:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("flunders")
    cluster = ServeProcess(folder / "cluster")
    kubeconfig = cluster.data_dir / "admin.kubeconfig"
    made = Kubectl(kubeconfig, folder)
    try:
        server = ExtensionServer(kubeconfig, folder / "data", "--register")
        made("wait", "--for=condition=Available", f"apiservice/{API_SERVICE}", KUBECTL_TIMEOUT)
        _eventually(lambda: "flunders" in made("api-resources", "--api-group=wardle.example.com"))
        yield made
        server.stop()
        assert "NotFound" in made.fails("get", "apiservice", API_SERVICE), "it leaves when it ends"
    finally:
        cluster.close()


def _eventually(check: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _flunder(name: str, **spec: Any) -> str:
    obj = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}
    return json.dumps(obj)


def test_the_cluster_shows_where_the_group_is_served(kubectl: Kubectl) -> None:
    assert kubectl("get", "apiservice", API_SERVICE, "--no-headers").split()[:3] == [
        API_SERVICE,
        "wardle/wardle-apiserver",
        "True",
    ]


def test_its_schema_is_explained(kubectl: Kubectl) -> None:
    _eventually(lambda: kubectl.run("explain", "flunder").returncode == 0)
    assert "A flunder refers to another one, or to a fischer." in kubectl("explain", "flunder")
    explained = kubectl("explain", "flunder.spec")
    assert "The name of what it refers to, in the same namespace." in explained
    assert "enum: Flunder, Fischer" in explained


def test_the_controller_counts_referrers_and_people_can_wait_for_it(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_flunder("hub"))
    kubectl("create", "-f", "-", stdin=_flunder("spoke", reference="hub"))
    kubectl("wait", "flunder/hub", "--for=jsonpath={.status.referrers}=1", KUBECTL_TIMEOUT)
    wide = kubectl("get", "fl", "hub", "spoke", "-o", "wide", "--no-headers").splitlines()
    assert [line.split()[:-1] for line in wide] == [["hub", "1"], ["spoke", "hub", "0"]]
    assert "REFERRERS" not in kubectl("get", "fl")
    kubectl("delete", "flunder", "spoke")
    kubectl("wait", "flunder/hub", "--for=jsonpath={.status.referrers}=0", KUBECTL_TIMEOUT)


def test_it_is_edited_patched_and_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=_flunder("changed", reference="a"))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/reference: a/reference: b/' $1\n")
    editor.chmod(0o700)
    assert kubectl("edit", "flunder", "changed", env={"EDITOR": str(editor)}) == f"{NAMED}/changed edited\n"
    patch = '[{"op": "test", "path": "/spec/reference", "value": "b"}, {"op": "remove", "path": "/spec/referenceType"}]'
    kubectl("patch", "flunder", "changed", "--type=json", "-p", patch)
    kubectl("patch", "flunder", "changed", "--type=merge", "-p", '{"spec": {"referenceType": "Fischer"}}')
    assert kubectl.json("get", "flunder", "changed")["spec"] == {"reference": "b", "referenceType": "Fischer"}
    refused = kubectl.fails("apply", "--server-side", "-f", "-", stdin=_flunder("changed", reference="c"))
    assert "conflict" in refused
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=_flunder("changed", reference="c"))
    assert kubectl.json("get", "flunder", "changed")["spec"] == {"reference": "c", "referenceType": "Fischer"}


def test_it_is_selected_by_labels_and_fields(kubectl: Kubectl) -> None:
    for name in ("x1", "x2"):
        kubectl("create", "-f", "-", stdin=_flunder(name, reference=f"of-{name}"))
    kubectl("label", "flunder", "x1", "x=1")
    assert kubectl("get", "flunders", "-l", "x=1", "-o", "name") == f"{NAMED}/x1\n"
    assert kubectl("get", "flunders", "--field-selector=spec.reference=of-x2", "-o", "name") == f"{NAMED}/x2\n"
    refused = kubectl.fails("get", "flunders", "--field-selector=spec.referenceType=Flunder")
    assert "field label not supported" in refused


def test_dry_runs_change_nothing_and_unknown_fields_are_refused(kubectl: Kubectl) -> None:
    kubectl("create", "--dry-run=server", "-f", "-", stdin=_flunder("dry"))
    assert "NotFound" in kubectl.fails("get", "flunder", "dry")
    assert 'unknown field "spec.refrence"' in kubectl.fails("create", "-f", "-", stdin=_flunder("typo", refrence="a"))
    warned = kubectl.run("create", "--validate=warn", "-f", "-", stdin=_flunder("typo", refrence="a"))
    assert (warned.returncode, 'unknown field "spec.refrence"' in warned.stderr) == (0, True)
    refused = kubectl.fails("create", "-f", "-", stdin=_flunder("half", referenceType="Flunder"))
    assert "spec.reference: Required value: a reference type needs a reference" in refused


def test_a_watch_sees_creation_change_and_deletion(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=_flunder("seen", reference="a"))
    words = ("get", "flunder", "seen", "--watch", "--output-watch-events", "-o", "jsonpath={.type}{'\\n'}")
    watching = kubectl.start(*words)
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "ADDED\n"
        kubectl("label", "flunder", "seen", "a=b")
        kubectl("delete", "flunder", "seen")
        later = iter(watching.stdout.readline, "")
        assert "DELETED\n" in (line for line in later if line != "MODIFIED\n")
    finally:
        watching.kill()
        watching.communicate()
