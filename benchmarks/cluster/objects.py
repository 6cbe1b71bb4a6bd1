"""What is in the cluster: nodes and their leases, pods, and the ConfigMaps and Secrets that pods use."""

from __future__ import annotations

import time

from servers.bodies import CONTAINER, VOLUME

from pilothouse.machinery.objects import Json

NODES_A_NAMESPACE = 100
"""As in Kubernetes' own load tests: 3,000 pods."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def namespace_of(node: int) -> str:
    return f"scale-{node // NODES_A_NAMESPACE}"


def root(node: int) -> str:
    return f"/api/v1/namespaces/{namespace_of(node)}"


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())


def node_object(name: str) -> Json:
    room = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    images = [
        {
            "names": [f"registry.example.com/image-{i}@sha256:{i:064}", f"registry.example.com/image-{i}:v1"],
            "sizeBytes": i,
        }
        for i in range(20)
    ]
    status = {"capacity": room, "allocatable": room, "conditions": conditions(), "images": images}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def conditions() -> list[Json]:
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    beat = now()[:19] + "Z"
    return [
        {
            "type": kind,
            "status": str(kind == "Ready"),
            "reason": "KubeletHasEnough",
            "message": f"kubelet has said {kind}",
            "lastHeartbeatTime": beat,
        }
        for kind in kinds
    ]


def lease(name: str, version: str = "") -> Json:
    meta = {"name": name, "namespace": "kube-node-lease"} | ({"resourceVersion": version} if version else {})
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def config_object(kind: str, name: str) -> Json:
    """A ConfigMap or a Secret of about 1 kB."""
    value = "x" * 1000 if kind == "ConfigMap" else "eHh4" * 250
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"key": value}}


def pod(name: str, *, node: str, padded: bool) -> Json:
    """One of a Deployment.

    A padded one is as large as one that runs, before it has a status.
    """
    spec: Json = {"containers": [CONTAINER], "volumes": [VOLUME]}
    meta: Json = {"name": name, "labels": {"app": "web", "pod-template-hash": "5d8c9b7f6d"}}
    if node:
        spec["nodeName"] = node
    if padded:
        meta["annotations"] = {"example.com/padding": "x" * 1000}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def binding(name: str, node: str) -> Json:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def event(pod: str, namespace: str, node: str, reason: str) -> Json:
    moment = now()[:19] + "Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{pod}."},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": namespace},
        "reason": reason,
        "message": f"{reason}: the container web of {pod}",
        "type": "Normal",
        "source": {"component": "kubelet", "host": node},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def pod_status(phase: str) -> Json:
    """A strategic merge patch, as a kubelet sends it."""
    moment, ready = now()[:19] + "Z", phase == "Running"
    state = {
        "Pending": {"waiting": {"reason": "ContainerCreating"}},
        "Running": {"running": {"startedAt": moment}},
        "Succeeded": {"terminated": {"exitCode": 0, "startedAt": moment, "finishedAt": moment}},
    }[phase]
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    each = {
        "name": "web",
        "image": "registry.k8s.io/nginx:1.27",
        "imageID": "registry.k8s.io/nginx@sha256:" + "0" * 64,
        "ready": ready,
        "restartCount": 0,
        "state": state,
        "containerID": "containerd://" + "0" * 64,
    }
    told = [{"type": kind, "status": str(ready), "lastTransitionTime": moment} for kind in kinds]
    addresses = {"hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "startTime": moment}
    return {"status": {"phase": phase, "conditions": told, "containerStatuses": [each], **addresses}}
