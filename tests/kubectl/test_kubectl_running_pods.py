"""kubectl on pods that run on a simulated node: logs, exec, cp, port-forward, attach, top, by WebSocket and by SPDY."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT, PATIENCE
from serving_process import ServeProcess

WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "true", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "true"}
SPDY = dict.fromkeys(WEBSOCKETS, "false")
PROTOCOLS = pytest.mark.parametrize("protocol", [WEBSOCKETS, SPDY], ids=["websockets", "spdy"])

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: node-1
  containers:
  - name: app
    image: nginx
    command: [sh, -c, "echo one; echo two; echo problem >&2; sleep 3600"]
    ports: [{containerPort: 80}]
    resources: {requests: {cpu: 100m, memory: 64Mi}}
    env: [{name: COLOR, value: blue}]
"""


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    """A kubectl for a server on which the pod web runs."""
    if BINARY is None:
        pytest.skip(MISSING)
    server = ServeProcess(tmp_path_factory.mktemp("simulated") / "data", "--simulated-nodes=1")
    kubectl = Kubectl(server.data_dir / "admin.kubeconfig", kubectl_home)
    try:
        kubectl("wait", "--for=create", "serviceaccount/default", KUBECTL_TIMEOUT)
        kubectl("create", "-f", "-", stdin=POD)
        kubectl("wait", "--for=condition=Ready", "pod/web", KUBECTL_TIMEOUT)
        yield kubectl
    finally:
        server.close()


def test_logs_are_what_the_command_writes(pods: Kubectl) -> None:
    assert pods("logs", "web") == "one\ntwo\nproblem\n"
    stamped = pods("logs", "web", "--tail=1", "--timestamps")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z problem\n", stamped)


def test_logs_are_followed_until_the_pod_is_gone(pods: Kubectl) -> None:
    command = ("sh", "-c", "echo bye; sleep 3600")
    pods("run", "short", "--image=busybox", "--overrides", '{"spec":{"nodeName":"node-1"}}', "--", *command)
    pods("wait", "--for=condition=Ready", "pod/short", KUBECTL_TIMEOUT)
    following = pods.start("logs", "-f", "short")
    assert following.stdout is not None
    assert following.stdout.readline() == "bye\n"
    pods("delete", "pod", "short", "--now")
    assert following.wait(PATIENCE) == 0


@PROTOCOLS
def test_commands_have_output_input_and_an_exit_code(pods: Kubectl, protocol: dict[str, str]) -> None:
    assert pods("exec", "web", "--", "printenv", "COLOR", env=protocol) == "blue\n"
    assert pods("exec", "-i", "web", "--", "cat", stdin="from here\n", env=protocol) == "from here\n"
    failed = pods.run("exec", "web", "--", "sh", "-c", "echo oops >&2; exit 3", env=protocol)
    assert (failed.returncode, failed.stdout) == (3, "")
    assert failed.stderr == "oops\ncommand terminated with exit code 3\n"


@PROTOCOLS
def test_files_are_copied_in_both_directions(pods: Kubectl, tmp_path: Path, protocol: dict[str, str]) -> None:
    here, back = tmp_path / "here.bin", tmp_path / "back.bin"
    here.write_bytes(bytes(range(256)) * 1000)
    pods("cp", str(here), "web:/tmp/there.bin", env=protocol)
    pods("cp", "web:/tmp/there.bin", str(back), env=protocol)
    assert back.read_bytes() == here.read_bytes()


@PROTOCOLS
def test_a_forwarded_port_reaches_the_pod(pods: Kubectl, protocol: dict[str, str]) -> None:
    forwarding = subprocess.Popen(
        [str(BINARY), "port-forward", "pod/web", ":80"],
        env=pods.environment | protocol,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert forwarding.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+) -> 80", forwarding.stdout.readline())
        assert found
        for path in ("/", "/?again"):
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}{path}", timeout=PATIENCE) as answer:
                page = answer.read().decode()
            assert page.startswith("pod: default/web\n")
            assert page.endswith(f"request: GET {path}\n")
    finally:
        forwarding.terminate()
        forwarding.wait()


@PROTOCOLS
def test_who_attaches_sees_what_is_logged(pods: Kubectl, protocol: dict[str, str]) -> None:
    attached = subprocess.Popen(
        [str(BINARY), "attach", "web", "--quiet"],
        env=pods.environment | protocol,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert attached.stdout is not None
        assert [attached.stdout.readline() for _ in range(2)] == ["one\n", "two\n"]
    finally:
        attached.terminate()
        attached.wait()


def test_top_shows_what_nodes_and_pods_use(pods: Kubectl) -> None:
    assert pods("top", "pods", "--no-headers").split() == ["web", "50m", "32Mi"]
    assert pods("top", "nodes", "--no-headers").split()[:2] == ["node-1", "100m"]
    assert pods("top", "pods", "--containers", "-l", "app=web", "--no-headers").split() == ["web", "app", "50m", "32Mi"]


def test_what_the_pod_serves_is_reached_by_the_proxies(pods: Kubectl) -> None:
    page = pods("get", "--raw", "/api/v1/namespaces/default/pods/web/proxy/?x=1")
    assert page.endswith("request: GET /?x=1\n")
    refused = pods.run("get", "--raw", "/api/v1/namespaces/default/pods/web:81/proxy/")
    assert "error trying to reach service: dial tcp" in refused.stderr
    assert pods("get", "--raw", "/api/v1/nodes/node-1/proxy/healthz") == "ok"
