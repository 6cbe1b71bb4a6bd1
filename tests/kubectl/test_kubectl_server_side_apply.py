"""Server-side apply with stock kubectl: managers that agree, disagree, and come from client-side apply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubectl import Kubectl

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {colour: blue, size: small}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Session:
    """kubectl in one namespace, applying on the server."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl = kubectl
        self.where = ("-n", namespace)

    def apply(self, manifest: str, *words: str) -> str:
        return self.kubectl("apply", "--server-side", "-f", "-", *self.where, *words, stdin=manifest)

    def refused(self, manifest: str, *words: str) -> str:
        return self.kubectl.fails("apply", "--server-side", "-f", "-", *self.where, *words, stdin=manifest)

    def get(self, kind: str = "configmap") -> Any:
        return self.kubectl.json("get", kind, "web", "--show-managed-fields", *self.where)

    def owners(self, kind: str = "configmap") -> dict[str, Any]:
        entries = self.get(kind)["metadata"]["managedFields"]
        return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}


@pytest.fixture
def session(kubectl: Kubectl, namespace: str) -> Session:
    return Session(kubectl, namespace)


def test_two_managers_in_conflict(session: Session) -> None:
    assert session.apply(CONFIG_MAP) == "configmap/web serverside-applied\n"
    red = CONFIG_MAP.replace("{colour: blue, size: small}", "{colour: red, shape: round}")
    said = session.refused(red, "--field-manager=painter")
    assert 'conflict with "kubectl": .data.colour' in said
    assert "--force-conflicts" in said
    assert session.get()["data"] == {"colour": "blue", "size": "small"}

    session.apply(red, "--field-manager=painter", "--force-conflicts")
    assert session.get()["data"] == {"colour": "red", "size": "small", "shape": "round"}
    assert session.owners() == {
        "kubectl Apply": {"f:data": {"f:size": {}}},
        "painter Apply": {"f:data": {"f:colour": {}, "f:shape": {}}},
    }

    # Who no longer mentions a field gives it up, and what nobody owns goes.
    session.apply(CONFIG_MAP.replace("{colour: blue, size: small}", "{}"))
    assert session.get()["data"] == {"colour": "red", "shape": "round"}


def test_applying_again_changes_nothing(session: Session) -> None:
    session.apply(CONFIG_MAP)
    before = session.get()
    session.apply(CONFIG_MAP)
    assert session.get() == before


def test_a_diff_and_a_dry_run_show_what_an_apply_would_do(session: Session) -> None:
    session.apply(CONFIG_MAP)
    larger = CONFIG_MAP.replace("small", "large")
    shown = session.kubectl.run("diff", "--server-side", "-f", "-", *session.where, stdin=larger)
    assert shown.returncode == 1
    assert "-  size: small" in shown.stdout
    assert "+  size: large" in shown.stdout
    assert session.apply(larger, "--dry-run=server") == "configmap/web serverside-applied (server dry run)\n"
    assert session.get()["data"]["size"] == "small"


def test_an_object_that_was_applied_by_the_client_is_taken_over_without_conflict(session: Session) -> None:
    session.kubectl("apply", "-f", "-", *session.where, stdin=CONFIG_MAP)
    session.apply(CONFIG_MAP.replace("small", "large"))
    found = session.get()
    assert found["data"] == {"colour": "blue", "size": "large"}
    assert json.loads(found["metadata"]["annotations"][LAST_APPLIED])["data"]["size"] == "large"


def test_the_client_may_take_an_object_back(session: Session) -> None:
    session.kubectl("apply", "-f", "-", *session.where, stdin=CONFIG_MAP)
    session.apply(CONFIG_MAP.replace("{colour: blue, size: small}", "{colour: blue, shape: round}"))
    # The client removes the shape because the server has told it, in the annotation, that it was applied.
    session.kubectl("apply", "-f", "-", *session.where, stdin=CONFIG_MAP)
    assert session.get()["data"] == {"colour": "blue", "size": "small"}


def test_scaling_takes_the_replicas_from_their_owner(session: Session) -> None:
    session.apply(DEPLOYMENT)
    session.kubectl("scale", "deployment/web", "--replicas=3", *session.where)
    owners = session.owners("deployment")
    assert owners["kubectl Update"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners["kubectl Apply"]["f:spec"]
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in session.refused(
        DEPLOYMENT
    )
    session.apply(DEPLOYMENT.replace("  replicas: 1\n", ""))
    assert session.get("deployment")["spec"]["replicas"] == 3


def test_a_field_that_nobody_knows_is_refused(session: Session) -> None:
    said = session.refused(CONFIG_MAP + "colour: red\n", "--validate=false")
    assert ".colour: field not declared in schema" in said


def test_items_of_a_list_with_keys_are_merged(session: Session) -> None:
    session.apply(DEPLOYMENT)
    sidecar = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: side, image: busybox}]}}}
"""
    session.apply(sidecar, "--field-manager=injector")
    names = [c["name"] for c in session.get("deployment")["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["side", "web"]
    session.apply(DEPLOYMENT.replace("nginx", "nginx:2"))
    images = {c["image"] for c in session.get("deployment")["spec"]["template"]["spec"]["containers"]}
    assert images == {"nginx:2", "busybox"}
