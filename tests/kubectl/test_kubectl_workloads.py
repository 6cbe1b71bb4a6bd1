"""What a person does with stock kubectl on workloads, jobs, autoscalers and disruption budgets."""

from __future__ import annotations

import pytest
from kubectl import Kubectl

TEMPLATE = '{"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}'
SELECTOR = '{"matchLabels": {"a": "b"}}'
WORKLOADS = f"""
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: w}}
spec: {{"selector": {SELECTOR}, "template": {TEMPLATE}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {{name: w}}
spec: {{"template": {TEMPLATE}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: w}}
spec: {{"serviceName": "s", "selector": {SELECTOR}, "template": {TEMPLATE}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: w}}
spec: {{"selector": {SELECTOR}, "template": {TEMPLATE}}}
"""


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if line]


@pytest.fixture
def web(kubectl: Kubectl, namespace: str) -> str:
    """The namespace of a deployment that is called web."""
    created = kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2", "-n", namespace)
    assert created == "deployment.apps/web created\n"
    return namespace


def test_a_deployment_is_shown_with_its_counts(kubectl: Kubectl, web: str) -> None:
    kubectl("wait", "deploy/web", "--for=jsonpath={.status.updatedReplicas}=2", "-n", web)
    header, row = rows(kubectl("get", "deploy", "-o", "wide", "-n", web))
    assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert [*row[:4], *row[5:]] == ["web", "0/2", "2", "0", "nginx", "nginx:1", "app=web"]


def test_scale_changes_the_replicas_and_checks_what_it_is_told_to(kubectl: Kubectl, web: str) -> None:
    assert kubectl("scale", "deploy/web", "--replicas=4", "-n", web) == "deployment.apps/web scaled\n"
    refused = kubectl.fails("scale", "deploy/web", "--replicas=1", "--current-replicas=2", "-n", web)
    assert "Expected replicas to be 2, was 4" in refused
    kubectl("wait", "deploy/web", "--for=jsonpath={.status.replicas}=4", "-n", web)
    assert rows(kubectl("get", "deploy", "web", "--subresource=scale", "-n", web))[1][:3] == ["web", "4", "4"]


def test_set_changes_the_template(kubectl: Kubectl, web: str) -> None:
    kubectl("set", "image", "deploy/web", "nginx=nginx:2", "-n", web)
    kubectl("set", "env", "deploy/web", "A=b", "-n", web)
    kubectl("set", "resources", "deploy/web", "--limits=cpu=100m", "-n", web)
    found = kubectl.json("get", "deploy", "web", "-n", web)
    [container] = found["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("nginx:2", [{"name": "A", "value": "b"}])
    assert container["resources"] == {"limits": {"cpu": "100m"}}
    assert found["metadata"]["generation"] == 4


def test_autoscale_makes_an_autoscaler(kubectl: Kubectl, web: str) -> None:
    kubectl("autoscale", "deploy/web", "--max=5", "-n", web)
    header, row = rows(kubectl("get", "hpa", "-n", web))
    assert header == ["NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
    assert row[:7] == ["web", "Deployment/web", "cpu:", "<unknown>/80%", "1", "5", "0"]
    older = kubectl.json("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-n", web)
    assert older["spec"]["targetCPUUtilizationPercentage"] == 80
    assert "resource cpu on pods" in kubectl("describe", "hpa", "web", "-n", web)


def test_the_other_workloads_are_applied_shown_and_scaled(kubectl: Kubectl, namespace: str) -> None:
    kubectl("apply", "-f", "-", "-n", namespace, stdin=WORKLOADS)
    for kind in ("rc", "sts", "rs"):
        kubectl("scale", f"{kind}/w", "--replicas=3", "-n", namespace)
    assert rows(kubectl("get", "sts", "-n", namespace))[1][:2] == ["w", "0/3"]
    for kind in ("rc", "rs"):
        kubectl("wait", f"{kind}/w", "--for=jsonpath={.status.replicas}=3", "-n", namespace)
        assert rows(kubectl("get", kind, "-n", namespace))[1][:4] == ["w", "3", "3", "0"]
    daemons = rows(kubectl("get", "ds", "-n", namespace))[1]
    assert (daemons[0], daemons[6]) == ("w", "<none>")
    unchanged = kubectl("apply", "-f", "-", "-n", namespace, stdin=WORKLOADS).splitlines()
    assert [line.split()[1] for line in unchanged] == ["unchanged"] * 4


def test_a_job_runs_once_and_a_cron_job_makes_them(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "cronjob", "nightly", "--image=i", "--schedule=@daily", "-n", namespace, "--", "true")
    kubectl("create", "job", "now", "--from=cronjob/nightly", "-n", namespace)
    assert rows(kubectl("get", "jobs", "-n", namespace))[1][:3] == ["now", "Running", "0/1"]
    assert rows(kubectl("get", "cj", "-n", namespace))[1][:6] == ["nightly", "@daily", "<none>", "False", "0", "<none>"]
    refused = kubectl.fails("create", "cronjob", "odd", "--image=i", "--schedule=61 * * * *", "-n", namespace)
    assert "end of range (61) above maximum (59): 61" in refused
    assert "Parallelism:" in kubectl("describe", "job", "now", "-n", namespace)
    assert "Schedule:" in kubectl("describe", "cronjob", "nightly", "-n", namespace)


def test_a_budget_is_created_and_shown(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "pdb", "p", "--selector=app=web", "--min-available=50%", "-n", namespace)
    assert rows(kubectl("get", "pdb", "-n", namespace))[1][:4] == ["p", "50%", "N/A", "0"]


def test_get_all_shows_the_workloads(kubectl: Kubectl, web: str) -> None:
    kubectl("create", "job", "j", "--image=i", "-n", web)
    assert {"deployment.apps/web", "job.batch/j"} <= set(kubectl("get", "all", "-o", "name", "-n", web).split())
