"""`pilothouse generate`: a server takes the manifests of an operator, and they change with its code only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.cli.main import main
from pilothouse.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.scaffold.operator_manifests import merged_rules
from pilothouse.testing import BlockingAPI, Server

CODE = '''
from typing import Annotated

from pilothouse.builder import AGE, Column, Errors, Minimum, Rule, Scale, forbidden
from pilothouse.operator import Manager, Reconciler, Status, Watch, converting, kind, mutating, validating


class FleetStatus(Status):
    boats: int = 0


@kind(
    group="demo.example.com",
    version="v1",
    status=FleetStatus,
    short_names=["fl"],
    columns=[Column("Size", ".spec.size"), AGE],
    scale=Scale(spec=".spec.size", status=".status.boats"),
    rules=["self.metadata.name != 'none'"],
)
class Fleet:
    """A fleet of boats."""

    harbor: str
    size: Annotated[int, Minimum(0)] = 1


@kind(group="demo.example.com", version="v1alpha1", status=FleetStatus, kind="Fleet", storage=False, deprecated="old")
class OldFleet:
    port: str
    size: int = 1


class FleetReconciler(Reconciler[Fleet]):
    owns = ["apps/v1 Deployment", "v1 ConfigMap"]
    watches = [Watch("v1 Secret", to=lambda secret: [])]
    reads = ["networking.k8s.io/v1 NetworkPolicy"]
    finalizer = "demo.example.com/fleet"

    async def reconcile(self, fleet: Fleet) -> None: ...

    @mutating
    def fill(self, fleet: Fleet) -> None:
        fleet.harbor = fleet.harbor or "Cork"

    @validating(operations=["UPDATE"], failure_policy="Ignore", match_conditions={"a": "object.metadata.name != ''"})
    def keep_harbor(self, fleet: Fleet, old: Fleet) -> Errors:
        if fleet.harbor != old.harbor:
            yield forbidden("spec.harbor", "a fleet stays where it is")

    @converting(from_=OldFleet, to=Fleet)
    def upgrade(self, fleet: OldFleet) -> Fleet:
        return Fleet(harbor=fleet.port, size=fleet.size)

    @converting(from_=Fleet, to=OldFleet)
    def downgrade(self, fleet: Fleet) -> OldFleet:
        return OldFleet(port=fleet.harbor, size=fleet.size)
'''
PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Deployment": "deployments",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "Namespace": "namespaces",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleets.py").write_text(
        CODE + "\n\nif __name__ == '__main__':\n    Manager(reconcilers=[FleetReconciler]).run()\n"
    )
    yield tmp_path
    sys.modules.pop("fleets", None)


def generated(capsys: pytest.CaptureFixture[str], *words: str) -> list[Json]:
    assert main(["generate", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def one(objects: list[Json], kind: str) -> Any:
    [found] = [obj for obj in objects if obj["kind"] == kind]
    return found


@pytest.mark.usefixtures("folder")
def test_a_definition_has_all_versions_with_schema_columns_scale_and_conversion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [definition] = generated(capsys, "crds", "fleets")
    spec = definition["spec"]
    assert [version["name"] for version in spec["versions"]] == ["v1", "v1alpha1"]
    new, old = spec["versions"]
    assert new["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] == {
        "default": 1,
        "format": "int64",
        "minimum": 0,
        "type": "integer",
    }
    assert new["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] == [{"rule": "self.metadata.name != 'none'"}]
    assert new["subresources"]["scale"] == {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.boats"}
    assert [column["name"] for column in new["additionalPrinterColumns"]] == ["Size", "Age"]
    assert (old["deprecated"], old["storage"]) == (True, False)
    service = {"name": "fleets", "namespace": "fleets-system", "path": "/convert", "port": 443}
    assert spec["conversion"]["webhook"]["clientConfig"] == {"service": service}


@pytest.mark.usefixtures("folder")
def test_the_roles_follow_from_the_declared_use(capsys: pytest.CaptureFixture[str]) -> None:
    objects = generated(capsys, "rbac", "fleets")
    rules = {
        (rule["apiGroups"][0], rule["resources"][0]): (rule["verbs"], rule.get("resourceNames"))
        for rule in one(objects, "ClusterRole")["rules"]
    }
    read, write = ["get", "list", "watch"], ["create", "delete", "get", "list", "patch", "update", "watch"]
    assert rules == {
        ("", "configmaps"): (write, None),
        ("", "events"): (["create", "patch"], None),
        ("", "secrets"): (read, None),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): (["get", "patch"], ["fleets"]),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): (["get", "patch"], ["fleets"]),
        ("apiextensions.k8s.io", "customresourcedefinitions"): (["get", "patch"], ["fleets.demo.example.com"]),
        ("apps", "deployments"): (write, None),
        ("demo.example.com", "fleets"): (["get", "list", "patch", "update", "watch"], None),
        ("demo.example.com", "fleets/finalizers"): (["update"], None),
        ("demo.example.com", "fleets/status"): (["get", "patch", "update"], None),
        ("networking.k8s.io", "networkpolicies"): (read, None),
    }
    own = [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in one(objects, "Role")["rules"]]
    assert (["leases"], ["get", "update"], ["fleets"]) in own
    assert (["secrets"], ["get", "update"], ["fleets-ca"]) in own


def test_typed_built_in_kinds_have_roles_and_webhooks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "fleets.py").write_text(
        """
from pilothouse.operator import Reconciler, validating
from pilothouse.operator.types.core_v1 import Endpoints, Pod


class PodReconciler(Reconciler[Pod]):
    owns = [Endpoints]

    async def reconcile(self, pod: Pod) -> None: ...

    @validating
    def check(self, pod: Pod) -> None: ...
"""
    )
    rules = one(generated(capsys, "rbac", "fleets"), "ClusterRole")["rules"]
    assert {"pods", "pods/status", "endpoints"} <= {name for rule in rules for name in rule["resources"]}
    [hook] = one(generated(capsys, "webhooks", "fleets"), "ValidatingWebhookConfiguration")["webhooks"]
    assert hook["rules"][0]["resources"] == ["pods"]


@pytest.mark.usefixtures("folder")
def test_webhooks_have_the_declared_options(capsys: pytest.CaptureFixture[str]) -> None:
    objects = generated(capsys, "webhooks", "fleets", "--namespace", "ships")
    [hook] = one(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert hook == {
        "name": "keep-harbor.fleets.demo.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": "fleets",
                "namespace": "ships",
                "path": "/validate-demo-example-com-v1-fleet/keep-harbor",
                "port": 443,
            }
        },
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "a", "expression": "object.metadata.name != ''"}],
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "apiGroups": ["demo.example.com"],
                "apiVersions": ["v1"],
                "operations": ["UPDATE"],
                "resources": ["fleets"],
                "scope": "*",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    assert one(objects, "Service")["metadata"]["namespace"] == "ships"
    assert [hook["name"] for hook in one(objects, "MutatingWebhookConfiguration")["webhooks"]] == [
        "fill.fleets.demo.example.com"
    ]


def test_a_server_accepts_all_manifests(
    folder: Path, capsys: pytest.CaptureFixture[str], pilothouse: BlockingAPI
) -> None:
    assert main(["generate", "manifests", "fleets", "--output", "manifests"]) == 0
    client = pilothouse.client()
    for file in sorted((folder / "manifests").iterdir()):
        for obj in yaml.safe_load_all(file.read_text()):
            namespace = obj["metadata"].get("namespace", "")
            resource = client.resource(obj["apiVersion"], PLURALS[obj["kind"]], namespace=namespace)
            resource.create(obj)


def test_regeneration_changes_nothing_and_a_check_shows_what_would_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate = ["generate", "manifests", "fleets", "--output", "manifests"]
    assert main(generate) == 0
    before = {path.name: path.read_bytes() for path in (folder / "manifests").iterdir()}
    assert sorted(before) == [
        *("1-namespace.yaml", "2-crds.yaml", "3-rbac.yaml", "4-deployment.yaml", "5-webhooks.yaml")
    ]
    capsys.readouterr()
    sys.modules.pop("fleets")
    assert main(generate) == 0
    assert capsys.readouterr().out == ""
    assert {path.name: path.read_bytes() for path in (folder / "manifests").iterdir()} == before
    assert main([*generate, "--check"]) == 0
    (folder / "fleets.py").write_text(CODE.replace("Minimum(0)", "Minimum(1)"))
    sys.modules.pop("fleets")
    capsys.readouterr()
    assert main([*generate, "--check"]) == 1
    captured = capsys.readouterr()
    assert "-                minimum: 0\n+                minimum: 1\n" in captured.out
    assert (
        "Error: manifests is out of date: run `pilothouse generate manifests fleets --output manifests`" in captured.err
    )
    assert {path.name: path.read_bytes() for path in (folder / "manifests").iterdir()} == before


def test_files_that_the_code_no_longer_needs_are_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generate = ["generate", "manifests", "fleets", "--output", "manifests"]
    assert main(generate) == 0
    (folder / "fleets.py").write_text(CODE[: CODE.index("    @mutating")])
    sys.modules.pop("fleets")
    assert main([*generate, "--check"]) == 1
    assert main(generate) == 0
    assert "removed  manifests/5-webhooks.yaml" in capsys.readouterr().out
    assert not (folder / "manifests" / "5-webhooks.yaml").exists()


def test_a_module_that_runs_its_manager_is_read_and_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "running.py").write_text(
        CODE + "\n\nManager(reconcilers=[FleetReconciler], name='armada', namespaces=['north']).run()\n"
    )
    objects = generated(capsys, "rbac", "running")
    sys.modules.pop("running", None)
    assert one(objects, "ServiceAccount")["metadata"]["name"] == "armada"
    roles = [obj["metadata"] for obj in objects if obj["kind"] == "Role"]
    assert [(meta["name"], meta["namespace"]) for meta in roles] == [
        ("armada", "north"),
        ("armada:manager", "armada-system"),
    ]


def test_a_recording_adds_what_the_code_does_not_declare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests = [
        {"user": "ann", "verb": "get", "group": "", "resource": "nodes", "name": "a"},
        {"user": "ann", "verb": "list", "group": "", "resource": "secrets", "namespace": "b"},
        {"user": "ann", "verb": "delete", "group": "", "resource": "secrets", "name": "c", "namespace": "b"},
        {"user": "ann", "verb": "get", "nonResourceURL": "/version"},
    ]
    (folder / "recording.yaml").write_text(
        yaml.safe_dump({"metadata": {"name": "a"}, "status": {"requests": requests}})
    )
    rules = one(generated(capsys, "rbac", "fleets", "--from-recording", "recording.yaml"), "ClusterRole")["rules"]
    assert {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["a"], "verbs": ["get"]} in rules
    assert {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["c"], "verbs": ["delete"]} in rules
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]} in rules


@pytest.mark.usefixtures("folder")
def test_a_recording_on_a_server_adds_what_its_program_did(capsys: pytest.CaptureFixture[str]) -> None:
    with Server(testing=True) as api:
        program = api.as_user("fleets", groups=["system:masters"])
        with api.recording("run", users=["fleets"]):
            with suppress(NotFound):
                program.client().resource("v1", "nodes").get("a")
            command = ("rbac", "fleets", "--from-recording", "run", "--kubeconfig", str(api.kubeconfig))
            rules = one(generated(capsys, *command), "ClusterRole")["rules"]
            assert main(["generate", "rbac", "fleets", "--from-recording", "other", *command[-2:]]) == 1
    assert {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["a"], "verbs": ["get"]} in rules
    assert "other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = 1", "broken has no Manager and no Reconciler"),
        ("def (", "cannot import broken: SyntaxError"),
        ("raise SystemExit(3)", "cannot import broken: SystemExit: 3"),
    ],
)
def test_code_that_is_no_operator_is_refused(
    code: str, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text(code)
    assert main(["generate", "crds", "broken"]) == 1
    sys.modules.pop("broken", None)
    assert capsys.readouterr().err.startswith(f"Error: {reason}")


def test_rules_are_merged_and_sorted() -> None:
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get", "delete"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    assert merged_rules(rules) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"], "resourceNames": ["a"]},
        {"apiGroups": ["apps"], "resources": ["pods"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
