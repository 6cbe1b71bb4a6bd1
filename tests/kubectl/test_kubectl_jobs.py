"""Jobs, cron jobs and autoscalers by stock kubectl, on nodes that are simulated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT
from serving_process import ServeProcess

QUICK = (
    "--simulated-nodes=1",
    "--horizontal-pod-autoscaler-sync-period=500ms",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, kubectl_home: Path) -> Iterator[Kubectl]:
    if BINARY is None:
        pytest.skip(MISSING)
    server = ServeProcess(tmp_path_factory.mktemp("jobs") / "data", *QUICK)
    kubectl = Kubectl(server.data_dir / "admin.kubeconfig", kubectl_home)
    try:
        kubectl("wait", "--for=create", "serviceaccount/default", KUBECTL_TIMEOUT)
        yield kubectl
    finally:
        server.close()


def test_a_job_is_run_from_a_cron_job_before_its_time(cluster: Kubectl) -> None:
    cluster("create", "cronjob", "rarely", "--image=busybox", "--schedule=0 0 29 2 *", "--", "echo", "hi")
    assert cluster("create", "job", "now", "--from=cronjob/rarely") == "job.batch/now created\n"
    cluster("wait", "--for=condition=complete", "job/now", KUBECTL_TIMEOUT)
    job = cluster.json("get", "job", "now")
    assert job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    assert job["status"]["succeeded"] == 1
    assert "Completed" in cluster("events", "--for=job/now")
    cluster("wait", "cronjob/rarely", "--for=jsonpath={.status.lastSuccessfulTime}", KUBECTL_TIMEOUT)


def test_a_deployment_is_scaled_to_what_its_pods_use(cluster: Kubectl) -> None:
    cluster("create", "deployment", "web", "--image=nginx")
    cluster("set", "resources", "deploy/web", "--requests=cpu=100m")
    cluster("rollout", "status", "deploy/web", KUBECTL_TIMEOUT)
    cluster("autoscale", "deploy/web", "--cpu-percent=20", "--max=3")
    cluster("wait", "deploy/web", "--for=jsonpath={.status.readyReplicas}=3", KUBECTL_TIMEOUT)
    assert "New size: 3; reason: cpu resource utilization" in cluster("describe", "hpa", "web")
