"""The server's own controllers reach the same state under every perturbation of their requests and events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.explore.runner import Explorer
from pilothouse.explore.scenario import read_scenario

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

LABELS = {"app": "web"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ONCE = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def made(api_version: str, kind: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "default"}
    return {"apply": {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec, **more}}


WORKLOAD = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
SCENARIOS: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "deployment": (
        "deployment-controller,replicaset-controller",
        [made("apps/v1", "Deployment", WORKLOAD), made("apps/v1", "Deployment", WORKLOAD | {"replicas": 1})],
        {},
    ),
    "replicaset": ("replicaset-controller", [made("apps/v1", "ReplicaSet", WORKLOAD)], {}),
    "statefulset": (
        "statefulset-controller",
        [made("apps/v1", "StatefulSet", WORKLOAD | {"serviceName": "web", "podManagementPolicy": "Parallel"})],
        {},
    ),
    "job": ("job-controller", [made("batch/v1", "Job", {"template": ONCE})], {}),
    "cronjob": (
        "cronjob-controller",
        [
            made("batch/v1", "CronJob", {"schedule": "*/30 * * * *", "jobTemplate": {"spec": {"template": ONCE}}}),
            {"advance": "30m"},
            {
                "patch": {
                    "apiVersion": "batch/v1",
                    "kind": "CronJob",
                    "name": "web",
                    "patch": {"spec": {"suspend": True}},
                }
            },
        ],
        {},
    ),
    "daemonset": (
        "daemonset-controller",
        [made("apps/v1", "DaemonSet", {"selector": {"matchLabels": LABELS}, "template": TEMPLATE})],
        {"simulated_nodes": 1},
    ),
    "namespace": (
        "namespace-controller",
        [
            {"apply": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}}},
            {"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "gone"}}},
            {"delete": {"apiVersion": "v1", "kind": "Namespace", "name": "gone"}},
        ],
        {},
    ),
    "garbage-collector": (
        "garbage-collector-controller,replicaset-controller",
        [
            made("apps/v1", "ReplicaSet", WORKLOAD),
            {
                "delete": {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "web",
                    "propagationPolicy": "Foreground",
                }
            },
        ],
        # a delete that a crash interrupts may leave a terminating pod, which only this controller collects
        {"controllers": "pod-garbage-collector-controller"},
    ),
    "endpointslice": (
        "endpointslice-controller",
        [
            made("v1", "Service", {"clusterIP": "None", "selector": LABELS, "ports": [{"port": 80}]}),
            {"apply": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": LABELS}, **ONCE}},
        ],
        {"simulated_nodes": 1},
    ),
    "disruption": (
        "disruption-controller,replicaset-controller",
        [
            made("policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": {"matchLabels": LABELS}}),
            made("apps/v1", "ReplicaSet", WORKLOAD),
        ],
        {},
    ),
    "horizontal-pod-autoscaler": (
        "horizontal-pod-autoscaler-controller,replicaset-controller",
        [
            made("apps/v1", "ReplicaSet", WORKLOAD | {"replicas": 5}),
            made(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                {
                    "maxReplicas": 2,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
                },
            ),
        ],
        {},
    ),
    "persistentvolume-binder": (
        "persistentvolume-binder-controller",
        [
            {
                "apply": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": "pv"},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "hostPath": {"path": "/tmp"},
                        "storageClassName": "manual",
                    },
                }
            },
            made(
                "v1",
                "PersistentVolumeClaim",
                {
                    "storageClassName": "manual",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            ),
        ],
        {},
    ),
}


INVARIANTS = {"cronjob": [{"name": "one job per period", "cel": "objects.Job.size() == 1", "at": "End"}]}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_controller_passes_every_perturbation(name: str, tmp_path: Path) -> None:
    controllers, steps, flags = SCENARIOS[name]
    value = {
        "apiVersion": "explore.pilothouse.dev/v1alpha1",
        "kind": "Exploration",
        "metadata": {"name": name},
        "server": {"flags": flags},
        "operator": {"controllers": controllers.split(",")},
        "steps": steps,
        "ignore": [
            {"kind": "Job", "name": "web-*"},  # the name has the scheduled time
            {"kind": "CronJob", "path": "/status"},
            {"kind": "EndpointSlice", "path": "/metadata/annotations"},  # the trigger time is lost with a failed write
            {"kind": "Deployment", "path": "/status/conditions/*/reason"},  # tells which changes the controller saw
            {"kind": "Deployment", "path": "/status/conditions/*/message"},
        ],
        "invariants": INVARIANTS.get(name, []),
        "perturbations": {"exclude": ["DeleteOwned", "ChangeField", "AdvanceClock"]},
        "budget": {"time": "30m", "runs": 4 if name == "garbage-collector" else 12},  # watches every kind
    }
    async with Explorer(read_scenario(value, folder=tmp_path)) as explorer:
        outcome = await explorer.explore()
    found = [(one.perturbations[0].id, [finding.message for finding in one.findings]) for one in outcome.failures]
    assert found == []
    assert outcome.verdicts
