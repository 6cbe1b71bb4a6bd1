"""What a person does with stock kubectl to roll out deployments, while the pods run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT
from pods_that_run import pods_that_run_beside
from serving_process import ServeProcess


@pytest.fixture
def web(kubectl: Kubectl, server: ServeProcess, namespace: str) -> Iterator[str]:
    """The namespace of a deployment that is called web."""
    with pods_that_run_beside(server.data_dir / "admin.kubeconfig", namespace):
        kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2", "-n", namespace)
        yield namespace


def rolled_out(kubectl: Kubectl, namespace: str) -> bool:
    told = kubectl("rollout", "status", "deploy/web", KUBECTL_TIMEOUT, "-n", namespace)
    return told.endswith('deployment "web" successfully rolled out\n')


def history(kubectl: Kubectl, namespace: str) -> list[list[str]]:
    lines = kubectl("rollout", "history", "deploy/web", "-n", namespace).splitlines()
    return [line.split() for line in lines[2:] if line]


def test_a_rollout_is_followed_to_its_end_and_undone(kubectl: Kubectl, web: str) -> None:
    assert rolled_out(kubectl, web)
    kubectl("set", "image", "deploy/web", "nginx=nginx:2", "-n", web)
    assert rolled_out(kubectl, web)
    assert history(kubectl, web) == [["1", "<none>"], ["2", "<none>"]]
    assert "nginx:1" in kubectl("rollout", "history", "deploy/web", "--revision=1", "-n", web)
    assert kubectl("rollout", "undo", "deploy/web", "-n", web) == "deployment.apps/web rolled back\n"
    assert rolled_out(kubectl, web)
    assert history(kubectl, web) == [["2", "<none>"], ["3", "<none>"]]
    described = kubectl("describe", "deploy", "web", "-n", web)
    assert "2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in described
    assert "Progressing    True    NewReplicaSetAvailable" in described


def test_a_paused_rollout_waits_until_it_is_resumed(kubectl: Kubectl, web: str) -> None:
    kubectl("rollout", "pause", "deploy/web", "-n", web)
    reason = '{.status.conditions[?(@.type=="Progressing")].reason}'
    kubectl("wait", "deploy/web", f"--for=jsonpath={reason}=DeploymentPaused", KUBECTL_TIMEOUT, "-n", web)
    kubectl("set", "image", "deploy/web", "nginx=nginx:2", "-n", web)
    kubectl("rollout", "resume", "deploy/web", "-n", web)
    assert rolled_out(kubectl, web)


def test_a_restart_is_a_rollout_and_a_new_size_is_none(kubectl: Kubectl, web: str) -> None:
    kubectl("rollout", "restart", "deploy/web", "-n", web)
    assert rolled_out(kubectl, web)
    kubectl("scale", "deploy/web", "--replicas=3", "-n", web)
    kubectl("wait", "deploy/web", "--for=jsonpath={.status.availableReplicas}=3", KUBECTL_TIMEOUT, "-n", web)
    assert len(history(kubectl, web)) == 2
