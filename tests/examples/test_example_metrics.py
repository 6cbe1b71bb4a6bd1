"""examples/metrics.py: `kubectl top` works on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from example_module import Running
from kubectl import Kubectl
from patience import PATIENCE

from pilothouse.testing import BlockingAPI


@pytest.fixture(scope="module")
def kubectl(running: Running) -> Iterator[Kubectl]:
    with running("metrics") as (api, kubectl):
        room = {"cpu": "1", "memory": "400Mi"}
        node = {"metadata": {"name": "n1"}, "status": {"capacity": room, "allocatable": room}}
        containers = [{"name": name, "image": "i"} for name in ("web", "log")]
        pod = {
            "metadata": {"name": "p1", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1", "containers": containers},
        }
        client = api.client()
        client.resource("v1", "nodes").create(node)
        client.resource("v1", "pods", namespace="default").create(pod)
        _eventually(lambda: _used(api, "nodes/n1").get("usage") == {"cpu": "20m", "memory": "40Mi"})
        _eventually(lambda: "containers" in _used(api, "namespaces/default/pods/p1"))
        yield kubectl


def _used(api: BlockingAPI, path: str) -> Any:
    return api.request("GET", f"/apis/metrics.k8s.io/v1beta1/{path}").json


def _eventually(check: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_top_of_nodes_counts_the_containers_on_them(kubectl: Kubectl) -> None:
    assert kubectl("top", "nodes").split()[-5:] == ["n1", "20m", "2%", "40Mi", "10%"]
    assert kubectl("top", "node", "n1").split()[-5:] == ["n1", "20m", "2%", "40Mi", "10%"]


def test_the_top_of_pods_shows_their_containers_and_selects_by_label(kubectl: Kubectl) -> None:
    assert kubectl("top", "pods").split()[-3:] == ["p1", "20m", "40Mi"]
    assert kubectl("top", "pods", "-A", "--no-headers").split() == ["default", "p1", "20m", "40Mi"]
    by_container = kubectl("top", "pod", "-l", "app=web", "--containers", "--no-headers")
    assert by_container.split() == ["p1", "log", "10m", "20Mi", "p1", "web", "10m", "20Mi"]
    assert "No resources found" in kubectl.run("top", "pods", "-l", "app=other").stderr


def test_metrics_can_only_be_read(kubectl: Kubectl) -> None:
    assert "get,list,watch" in kubectl("api-resources", "--api-group=metrics.k8s.io", "-o", "wide")
    assert "MethodNotAllowed" in kubectl.fails("delete", "pods.v1beta1.metrics.k8s.io", "p1")


def test_the_metrics_of_a_pod_go_with_it(kubectl: Kubectl) -> None:
    kubectl("run", "short", "--image=i")
    _eventually(lambda: "short" in kubectl("top", "pods"))
    kubectl("delete", "pod", "short", "--force")
    _eventually(lambda: "short" not in kubectl("top", "pods"))
