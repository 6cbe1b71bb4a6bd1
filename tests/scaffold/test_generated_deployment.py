"""The generated Dockerfile and manifests as they are: the pod becomes ready, and the aggregator reaches the server."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from network_namespaces import HERE, NO_NAMESPACES, Network, can_make_namespaces
from patience import PATIENCE
from running_command import RunningCommand

from pilothouse.client import Json
from pilothouse.testing import BlockingAPI, Server

GROUP, NAME, NAMESPACE, POD = "wardle.example.com", "wardle-apiserver", "wardle", "pod"
FLUNDER = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
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
IN_CONTAINER = """
mount -t tmpfs none /var/run
mkdir -p /var/run/secrets/kubernetes.io
cp -r "$0" /var/run/secrets/kubernetes.io/serviceaccount
exec "$@"
"""
"""Script that mounts the service account's volume, and becomes the container's program."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder, words in (
        (tmp_path, ("new", "server", "project", "--group", GROUP)),
        (tmp_path / "project", ("new", "resource", "v1alpha1/Flunder")),
    ):
        subprocess.run([sys.executable, "-m", "pilothouse.cli.main", *words], cwd=folder, check=True)
    return tmp_path / "project"


@pytest.mark.skipif(not can_make_namespaces(), reason=NO_NAMESPACES)
@pytest.mark.timeout(900)
def test_the_generated_deployment_becomes_ready_and_is_served_through_its_service(
    project: Path, tmp_path: Path
) -> None:
    with (
        Network([POD], seed=1) as network,
        Server(
            bind_address="0.0.0.0",
            advertise_address=network.address(HERE),
            authorization_mode="RBAC",
            enable_aggregator_routing=True,
        ) as api,
    ):
        for obj in manifests(project):
            created = api.request("POST", f"{path_of(obj)}?fieldValidation=Strict", obj)
            assert created.status == 201, created.json
        pod = until(lambda: next(iter(api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods").json["items"]), None))
        container = pod["spec"]["containers"][0]
        assign_to_node(api, pod)
        command = [
            *(*network.within(POD), "sh", "-ec", IN_CONTAINER, str(service_account(api, pod, tmp_path))),
            *container_command(project, container, data=tmp_path / "data"),
        ]
        port = str(api.config().host.rpartition(":")[2])
        environment = {"KUBERNETES_SERVICE_HOST": network.address(HERE), "KUBERNETES_SERVICE_PORT": port}
        with RunningCommand(command, project, tmp_path / "output", {**os.environ, **environment}) as running:
            running.until(lambda: answers(network.address(POD), container) == [200, 200, 200])
            report_ready(api, pod, network.address(POD))
            running.until(lambda: api.request("GET", f"/apis/{GROUP}/v1alpha1/flunders").status == 200)
            assert endpoints(api) == {(network.address(POD), 8443)}
            flunders = f"/apis/{GROUP}/v1alpha1/namespaces/default/flunders"
            assert api.request("POST", flunders, FLUNDER).status == 201
            assert api.request("GET", f"{flunders}/a").status == 200


def test_the_generated_command_listens_on_more_than_127_0_0_1(project: Path, tmp_path: Path) -> None:
    deployment = next(obj for obj in manifests(project) if obj["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    with Server() as api:
        command = [
            *container_command(project, container, data=tmp_path / "data"),
            *("--secure-port=0", f"--kubeconfig={api.kubeconfig}"),  # this machine's 8443 may be in use
        ]
        with RunningCommand(command, project, tmp_path / "output", os.environ) as running:
            port = int(running.printed("server +https://127.0.0.1:(.*)"))
            listening = {**container, "ports": [{"name": "https", "containerPort": port}]}
            running.until(lambda: answers("127.0.0.2", listening) == [200, 200, 200])


def manifests(project: Path) -> Iterator[Json]:
    for file in sorted((project / "manifests").iterdir()):
        yield from yaml.safe_load_all(file.read_text())


def path_of(obj: Json) -> str:
    api_version, namespace = obj["apiVersion"], obj["metadata"].get("namespace")
    root = f"/api/{api_version}" if api_version == "v1" else f"/apis/{api_version}"
    return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{PLURALS[obj['kind']]}"


def container_command(project: Path, container: Json, *, data: Path) -> list[str]:
    """Return the image's entry point with the arguments of the manifest; the volume is at `data`."""
    lines = (project / "Dockerfile").read_text().splitlines()
    words = next(line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT "))
    python, *entry_point = json.loads(words)
    assert (python, "command" in container) == ("python", False)
    volume = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "data")
    return [sys.executable, *entry_point, *(arg.replace(volume, str(data)) for arg in container["args"])]


def service_account(api: BlockingAPI, pod: Json, folder: Path) -> Path:
    """Write the volume that the kubelet mounts in every pod."""
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    token = api.request("POST", f"{accounts}/{pod['spec']['serviceAccountName']}/token", {"spec": {}})
    assert token.status == 201, token.json
    root = api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/kube-root-ca.crt").json["data"]["ca.crt"]
    volume = folder / "serviceaccount"
    volume.mkdir()
    for name, text in {"token": token.json["status"]["token"], "ca.crt": root, "namespace": NAMESPACE}.items():
        (volume / name).write_text(text)
    return volume


def answers(address: str, container: Json) -> list[int]:
    return [probe(address, container, container[name]) for name in PROBES]


def probe(address: str, container: Json, wanted: Json) -> int:
    """Probe as the kubelet does: at the pod's address and the named port, without a check of the certificate."""
    get = wanted["httpGet"]
    port = next(port["containerPort"] for port in container["ports"] if port["name"] == get["port"])
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    url = f"{get['scheme'].lower()}://{address}:{port}{get['path']}"
    try:
        with urllib.request.urlopen(url, context=unchecked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def assign_to_node(api: BlockingAPI, pod: Json) -> None:
    """Bind the pod as the scheduler does."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}}
    assert api.request("POST", "/api/v1/nodes", node).status == 201
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/binding"
    answer = api.request("POST", path, {**binding, "target": {"kind": "Node", "name": "here"}})
    assert answer.status == 201, answer.json


def report_ready(api: BlockingAPI, pod: Json, address: str) -> None:
    """Write the status that the kubelet writes after a successful readiness probe."""
    conditions = [{"type": name, "status": "True"} for name in ("Initialized", "ContainersReady", "Ready")]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
    answer = api.request("PATCH", path, {"status": status}, media="application/merge-patch+json")
    assert answer.status == 200, answer.json


def endpoints(api: BlockingAPI) -> set[tuple[str, int]]:
    slices = api.request("GET", f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices").json["items"]
    return {
        (address, port["port"])
        for item in slices
        for endpoint in item["endpoints"]
        for address in endpoint["addresses"]
        for port in item["ports"]
    }


def until(value: Any) -> Any:
    last = time.monotonic() + PATIENCE
    while not (found := value()):
        assert time.monotonic() < last
        time.sleep(0.05)
    return found
