"""What a person does with stock kubectl about nodes and what runs on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT
from serving_process import ServeProcess

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: nginx}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: app, image: agent:1}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: app, image: db:1}]}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    """A kubectl for two nodes with workloads of three kinds on them."""
    if BINARY is None:
        pytest.skip(MISSING)
    server = ServeProcess(tmp_path_factory.mktemp("nodes") / "data", "--simulated-nodes=2")
    kubectl = Kubectl(server.data_dir / "admin.kubeconfig", kubectl_home)
    try:
        for needed in ("serviceaccount/default", "node/node-2"):
            kubectl("wait", "--for=create", needed, KUBECTL_TIMEOUT)
        kubectl("create", "-f", "-", stdin=WORKLOADS)
        for workload in ("deploy/web", "ds/agent", "sts/db"):
            rolled_out(kubectl, workload)
        yield kubectl
    finally:
        server.close()


def rolled_out(kubectl: Kubectl, workload: str) -> None:
    kubectl("rollout", "status", workload, KUBECTL_TIMEOUT)


def nodes_of(kubectl: Kubectl, app: str) -> set[str]:
    """The nodes on which the pods of a workload are."""
    return {pod["spec"].get("nodeName", "") for pod in kubectl.json("get", "pods", "-l", f"app={app}")["items"]}


@pytest.mark.parametrize("workload", ["ds/agent", "sts/db"])
def test_daemon_sets_and_stateful_sets_are_rolled_out_and_undone(cluster: Kubectl, workload: str) -> None:
    name = workload.partition("/")[2]
    before = cluster("get", workload, "-o", "jsonpath={..image}")
    cluster("set", "image", workload, f"app={name}:2")
    rolled_out(cluster, workload)
    shown = cluster("get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].spec.containers[*].image}")
    assert shown.split() == [f"{name}:2"] * 2
    cluster("rollout", "undo", workload)
    cluster("rollout", "restart", workload)
    rolled_out(cluster, workload)
    assert cluster("get", workload, "-o", "jsonpath={..image}") == before
    revisions = [line.split()[0] for line in cluster("rollout", "history", workload).splitlines()[2:] if line]
    assert revisions == ["2", "3", "4"]


def test_a_drained_node_keeps_its_daemons_only_and_takes_pods_again_later(cluster: Kubectl) -> None:
    assert "cannot delete DaemonSet-managed Pods" in cluster.fails("drain", "node-1")
    told = cluster("drain", "node-1", "--ignore-daemonsets", KUBECTL_TIMEOUT)
    assert told.endswith("node/node-1 drained\n")
    for workload in ("deploy/web", "sts/db"):
        rolled_out(cluster, workload)
    assert (nodes_of(cluster, "web"), nodes_of(cluster, "db")) == ({"node-2"}, {"node-2"})
    assert nodes_of(cluster, "agent") == {"node-1", "node-2"}
    assert "SchedulingDisabled" in cluster("get", "node", "node-1")
    cluster("uncordon", "node-1")
    cluster(
        "run", "here", "--image=nginx", "--overrides", '{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-1"}}}'
    )
    cluster("wait", "--for=condition=Ready", "pod/here", KUBECTL_TIMEOUT)


def test_a_pod_waits_while_all_nodes_are_cordoned_and_says_why(cluster: Kubectl) -> None:
    cluster("cordon", "node-1", "node-2")
    cluster("run", "waits", "--image=nginx")
    reason = '{.status.conditions[?(@.type=="PodScheduled")].reason}'
    cluster("wait", "pod/waits", f"--for=jsonpath={reason}=Unschedulable", KUBECTL_TIMEOUT)
    cluster("wait", "--for=create", "event", "--field-selector=reason=FailedScheduling", KUBECTL_TIMEOUT)
    assert "0/2 nodes are available: 2 node(s) were unschedulable." in cluster("events", "--for=pod/waits")
    cluster("uncordon", "node-1", "node-2")
    cluster("wait", "--for=condition=Ready", "pod/waits", KUBECTL_TIMEOUT)


def test_a_taint_drives_pods_away_that_do_not_tolerate_it(cluster: Kubectl) -> None:
    cluster("taint", "nodes", "node-2", "broken=yes:NoExecute")
    cluster("wait", "--for=delete", "pod", "-l=app=agent", "--field-selector=spec.nodeName=node-2", KUBECTL_TIMEOUT)
    for workload in ("deploy/web", "sts/db", "ds/agent"):
        rolled_out(cluster, workload)
    assert nodes_of(cluster, "web") == nodes_of(cluster, "db") == nodes_of(cluster, "agent") == {"node-1"}
    cluster("taint", "nodes", "node-2", "broken-")
    cluster("wait", "ds/agent", "--for=jsonpath={.status.numberReady}=2", KUBECTL_TIMEOUT)


def test_a_pod_and_a_node_are_debugged(cluster: Kubectl) -> None:
    cluster("run", "app", "--image=nginx", "--env=COLOR=blue")
    cluster("wait", "--for=condition=Ready", "pod/app", KUBECTL_TIMEOUT)
    cluster("debug", "app", "--image=busybox", "--container=look", "--profile=general", "--", "sleep", "3600")
    running = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}"
    cluster("wait", "pod/app", running, KUBECTL_TIMEOUT)
    assert cluster("exec", "app", "-c", "look", "--", "echo", "there") == "there\n"
    cluster("debug", "app", "--copy-to=copy", "--set-image=app=nginx:debug", "--profile=general")
    cluster("wait", "--for=condition=Ready", "pod/copy", KUBECTL_TIMEOUT)
    assert cluster("exec", "copy", "-c", "app", "--", "printenv", "COLOR") == "blue\n"
    said = cluster("debug", "node/node-1", "--image=busybox", "--profile=general", "--", "true")
    name = said.split("pod ")[1].split()[0]
    cluster("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", KUBECTL_TIMEOUT)


def test_events_say_what_happened_to_a_pod(cluster: Kubectl) -> None:
    following = cluster.start("events", "--for=pod/seen", "--watch", "--no-headers")
    try:
        cluster("run", "seen", "--image=nginx", "--annotations=pilothouse.dev/exit-code=3")
        assert following.stdout is not None
        told = set[str]()
        while not {"Scheduled", "Pulled", "Created", "Started", "BackOff"} <= told:
            told.add(following.stdout.readline().split()[2])
    finally:
        following.terminate()
        following.wait()
    assert "BackOff" in cluster("events", "--for=pod/seen", "--types=Warning")
