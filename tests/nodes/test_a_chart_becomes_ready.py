"""What charts are made of becomes ready by itself, as those who wait for it see it: helm --wait, Flux, Argo."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
import yaml
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Client, Json, ListOptions, name_of

CHART = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: migrate}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
      containers:
      - {name: c, image: nginx, ports: [{containerPort: 80}], readinessProbe: {httpGet: {port: 80}},
         volumeMounts: [{name: data, mountPath: /data}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: db, volumeMounts: [{name: own, mountPath: /var}]}]}
  volumeClaimTemplates:
  - metadata: {name: own}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {ingressClassName: simulated, defaultBackend: {service: {name: web, port: {number: 80}}}}
"""
PLURALS = {
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Job": "jobs",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "Service": "services",
    "Ingress": "ingresses",
}


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    async with whole_server(controllers="*", simulated_nodes=2, authorization_mode="RBAC") as api:
        yield api.client(in_process=True)


async def test_a_chart_of_everything_becomes_ready(client: Client) -> None:
    objects: list[Json] = list(yaml.safe_load_all(CHART))
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(_create_and_wait(client, obj) for obj in objects))


async def _create_and_wait(client: Client, obj: Json) -> None:
    resource = client.resource(obj["apiVersion"], PLURALS[obj["kind"]], namespace="default")
    await resource.create(obj)
    async with await resource.watch(ListOptions(field_selector=f"metadata.name={name_of(obj)}")) as watch:
        async for event in watch:
            if is_current(event.object):
                return


def is_current(obj: Json) -> bool:
    """As kstatus computes it: all that was asked for has been seen, and has come to be."""
    status: Json = obj.get("status") or {}
    generation = obj["metadata"].get("generation")
    if status.get("observedGeneration", generation) != generation:
        return False
    return bool(_RULES[obj["kind"]](obj.get("spec") or {}, status))


def _has_condition(status: Json, type_: str) -> bool:
    return any(each["type"] == type_ and each["status"] == "True" for each in status.get("conditions") or ())


def _has_address(spec: Json, status: Json) -> Any:
    return (status.get("loadBalancer") or {}).get("ingress")


_RULES = {
    "PersistentVolumeClaim": lambda spec, status: status.get("phase") == "Bound",
    "Job": lambda spec, status: _has_condition(status, "Complete"),
    "Deployment": lambda spec, status: (
        _has_condition(status, "Available")
        and spec["replicas"] == status.get("updatedReplicas") == status.get("availableReplicas")
    ),
    "StatefulSet": lambda spec, status: (
        spec["replicas"] == status.get("readyReplicas") == status.get("currentReplicas")
        and status.get("currentRevision") == status.get("updateRevision")
    ),
    "Service": _has_address,
    "Ingress": _has_address,
}
