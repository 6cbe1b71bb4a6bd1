"""The manifests of a server: a cluster takes them all, and they give the server what it needs, and no more."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.builder import APIServer, GroupVersionResource, ObjectMeta, ObjectName, Reconciler, Resource
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.objects import Json
from pilothouse.scaffold.manifests import Manifests
from pilothouse.scaffold.names import parse_kind
from pilothouse.scaffold.new import new_resource, new_server
from pilothouse.scaffold.project import find_project
from pilothouse.testing import API
from pilothouse.testing import server as whole_server

PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Deployment": "deployments",
    "Service": "services",
    "APIService": "apiservices",
}
NAME, ELSEWHERE = "wardle-apiserver", "elsewhere"
server = APIServer(group="wardle.example.com")


@server.resource(version="v1alpha1")
class Flunder(Resource):
    @dataclass
    class Status:
        ready: bool = False


@server.controller(Flunder, watches=[(GroupVersionResource("", "v1", "configmaps"), lambda obj: ())])
class FlunderController(Reconciler[Flunder]):
    async def reconcile(self, key: ObjectName) -> None:
        found = self.get(key)
        if found is not None and not found.status.ready:
            self.record(found, "Readied", "It is ready.")
            await self.update_status(found, lambda flunder: setattr(flunder.status, "ready", True))


@pytest.fixture
async def api() -> AsyncIterator[API]:
    async with whole_server(authorization_mode="RBAC") as api:
        yield api


def path_of(obj: Json) -> str:
    api_version, namespace = obj["apiVersion"], obj["metadata"].get("namespace")
    root = f"/api/{api_version}" if api_version == "v1" else f"/apis/{api_version}"
    return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{PLURALS[obj['kind']]}"


async def apply(api: API, objects: list[Json]) -> None:
    """Create them all, each after a dry run that must be taken just as well."""
    for obj in objects:
        for query in ("?dryRun=All&fieldValidation=Strict", "?fieldValidation=Strict"):
            answer = await api.request("POST", path_of(obj) + query, obj)
            assert answer.status == 201, (obj, answer.json)
            assert "warning" not in answer.headers


def test_the_command_prints_the_manifests_of_the_project(tmp_path: Path) -> None:
    new_server(tmp_path, server.group)
    new_resource(find_project(tmp_path), parse_kind("v1alpha1/Flunder"))
    words = ["manifests", "--image", "registry.example.com/wardle:1.0", "--namespace", ELSEWHERE]
    command = [sys.executable, "-m", "pilothouse.cli.main", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = list(yaml.safe_load_all(done.stdout))
    assert [obj["kind"] for obj in printed[:2]] == ["Namespace", "ServiceAccount"]
    assert {obj["kind"] for obj in printed} == PLURALS.keys()
    assert {obj["metadata"].get("namespace", ELSEWHERE) for obj in printed} == {ELSEWHERE, "kube-system"}
    deployment = next(obj for obj in printed if obj["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/wardle:1.0"


async def test_a_server_in_a_pod_needs_no_more_than_its_manifests_give_it(
    api: API, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply(api, Manifests.of(server, namespace=ELSEWHERE).objects())
    account = api.as_user(
        f"system:serviceaccount:{ELSEWHERE}:{NAME}", groups=["system:serviceaccounts", "system:authenticated"]
    )
    in_pod = replace(account.config(), namespace=ELSEWHERE)
    monkeypatch.setattr("pilothouse.builder.cluster.load_in_cluster", lambda: in_pod)
    flags = [f"--data-dir={tmp_path / 'data'}", "--secure-port=0", "--bind-address=127.0.0.1", "--leader-elect"]
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve(flags, stop, ready.set_result))
    await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
    try:
        place = serving.result() if serving.done() else ready.result()
        await _check(api, place)
    finally:
        stop.set()
        await serving


async def _check(api: API, place: Any) -> None:
    ca = place.ca_file.read_bytes()
    client = api.client()
    secret = await client.resource("v1", "secrets", namespace=ELSEWHERE).get(f"{NAME}-ca")
    assert base64.b64decode(secret["data"]["ca.crt"]) == ca
    service = await client.resource("apiregistration.k8s.io/v1", "apiservices").get("v1alpha1.wardle.example.com")
    assert base64.b64decode(service["spec"]["caBundle"]) == ca
    config = api.config()
    async with connect(replace(config, host=place.url, tls=replace(config.tls, ca_data=ca))) as direct:
        flunders = direct.resource("wardle.example.com/v1alpha1", "flunders", namespace="default")
        await flunders.create(Flunder(metadata=ObjectMeta(name="a")).to_json())
        while not (await flunders.get("a")).get("status", {}).get("ready"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    events = client.resource("v1", "events", namespace="default")
    while "Readied" not in [event["reason"] for event in (await events.list())["items"]]:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert (await client.resource("coordination.k8s.io/v1", "leases", namespace=ELSEWHERE).get(NAME))["spec"]


FORBIDDEN = [
    *((verb, "secrets", ELSEWHERE, "", "") for verb in ("list", "watch", "delete", "deletecollection")),
    ("get", "secrets", ELSEWHERE, "somebody-elses", ""),
    ("create", "secrets", "kube-system", "", ""),
    ("get", "secrets", "kube-system", f"{NAME}-ca", ""),
    *((verb, "configmaps", "kube-system", "", "") for verb in ("create", "update", "patch", "delete")),
    *(("create", resource, ELSEWHERE, "", "") for resource in ("pods", "pods/exec", "serviceaccounts/token")),
    *((verb, "deployments", ELSEWHERE, NAME, "apps") for verb in ("patch", "update", "delete")),
    *((verb, "namespaces", "", "", "") for verb in ("list", "create", "patch", "delete")),
    *((verb, "apiservices", "", "v1.", "apiregistration.k8s.io") for verb in ("get", "patch")),
    *((verb, "apiservices", "", "", "apiregistration.k8s.io") for verb in ("list", "create", "update", "delete")),
    *((verb, "leases", ELSEWHERE, "", "coordination.k8s.io") for verb in ("list", "delete", "deletecollection")),
    ("update", "leases", "kube-system", "kube-controller-manager", "coordination.k8s.io"),
    *((verb, "events", "default", "", "") for verb in ("get", "list", "delete")),
    *((verb, "users", "", "", "") for verb in ("impersonate",)),
    *((verb, "clusterroles", "", "", "rbac.authorization.k8s.io") for verb in ("create", "bind", "escalate", "patch")),
    *((verb, "rolebindings", ELSEWHERE, "", "rbac.authorization.k8s.io") for verb in ("create", "patch")),
    ("get", "nodes/proxy", "", "", ""),
    ("create", "validatingwebhookconfigurations", "", "", "admissionregistration.k8s.io"),
    ("create", "certificatesigningrequests", "", "", "certificates.k8s.io"),
]
"""Verb, resource, namespace, name and group of requests that would give a stolen account more than its server."""


async def test_an_account_that_is_stolen_from_a_pod_opens_nothing_else(api: API) -> None:
    await apply(api, Manifests.of(server, namespace=ELSEWHERE).objects())
    reviews = api.client().resource("authorization.k8s.io/v1", "subjectaccessreviews")
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{ELSEWHERE}", "system:authenticated"]
    allowed = []
    for verb, path, namespace, name, group in FORBIDDEN:
        resource, _, subresource = path.partition("/")
        asked = {"verb": verb, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name}
        user = f"system:serviceaccount:{ELSEWHERE}:{NAME}"
        spec = {"user": user, "groups": groups, "resourceAttributes": {**asked, "group": group}}
        answer = await reviews.create({"spec": spec})
        allowed += [(verb, path, namespace, name)] if answer["status"]["allowed"] else []
    assert allowed == []


async def test_the_pod_of_a_server_is_restricted(api: API) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.client().resource("v1", "namespaces").create({"metadata": {"name": "strict", "labels": level}})
    deployment = Manifests.of(server, namespace="strict").files()["3-deployment.yaml"][1]
    template = deployment["spec"]["template"]
    accounts = api.client().resource("v1", "serviceaccounts", namespace="strict")
    await accounts.create({"metadata": {"name": NAME}})
    await api.client().resource("v1", "pods", namespace="strict").create({**template, "metadata": {"name": "one"}})
